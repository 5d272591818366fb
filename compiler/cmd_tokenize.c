/* ingot tokenize */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "ids.h"

static void
print_ids(const Ids *ids)
{
	size_t i;

	for (i = 0; i < ids->count; i++)
		printf("%s%u", i ? "," : "", ids->at[i]);
	putchar('\n');
}

static int
tokenize(const Options *o, const char *text, size_t length)
{
	ingot_tokenizer *t;
	Error e;
	Ids ids;
	bool ok;

	if (ingot_tokenizer_open(o->operand[0], &t, &e))
		return library_error(&e);
	ok = ids_of_text(tokenizer_of(t), text, length, &ids);
	if (ok)
		print_ids(&ids);
	ids_free(&ids);
	ingot_tokenizer_close(t);
	return ok ? EXIT_DONE : EXIT_USER;
}

int
cmd_tokenize(const Options *o)
{
	char *text;
	size_t length;
	int code;

	if ((o->operands == 2) == (o->file != NULL))
		return usage_error(o, "either TEXT or -f FILE is needed");
	if (!o->file)
		return tokenize(o, o->operand[1], strlen(o->operand[1]));
	if (!read_file(o->file, &text, &length))
		return EXIT_USER;
	code = tokenize(o, text, length);
	free(text);
	return code;
}
