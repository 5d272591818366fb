/* Memory by unit of work: what one arena gave goes with it. */
#ifndef IR_ARENA_H
#define IR_ARENA_H

#include <stdarg.h>
#include <stddef.h>

typedef struct Arena Arena;

/* An empty arena; ends the program with a message when memory runs out, as do
 * the functions below: the compiler has nothing better to do then. */
Arena *arena_new(void);
void arena_free(Arena *a);
/* n zeroed bytes, aligned for anything. */
void *arena_alloc(Arena *a, size_t n);
/* count * size bytes with the product checked. */
void *arena_array(Arena *a, size_t count, size_t size);
char *arena_strdup(Arena *a, const char *s);
char *arena_strndup(Arena *a, const char *s, size_t n);
char *arena_printf(Arena *a, const char *fmt, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;

#endif
