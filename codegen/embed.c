/* Turns text files into C source, for the build:
 *
 *	embed text NAME FILE...        const char NAME[]: the files joined,
 *	                               ending with a 0
 *	embed table NAME ROOT FILE...  const EmbeddedFile NAME[]: the files,
 *	                               named without ROOT, and a NULL entry
 *
 * Bytes are written as numbers, because a string literal of more than 4095
 * characters is beyond what C promises. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
fatal(const char *path, const char *what)
{
	fprintf(stderr, "embed: %s: %s\n", path, what);
	exit(1);
}

/* Writes the bytes of a file, each followed by a comma; returns how many. */
static size_t
put_bytes(const char *path)
{
	FILE *in = fopen(path, "rb");
	size_t n = 0;
	int c;

	if (in == NULL)
		fatal(path, "cannot be opened");
	while ((c = getc(in)) != EOF) {
		if (c == 0 || c > 126)
			fatal(path, "is not ASCII text");
		printf("%d,%s", c, ++n % 20 == 0 ? "\n" : "");
	}
	if (ferror(in))
		fatal(path, "cannot be read");
	fclose(in);
	return n;
}

static void
put_text(const char *name, int n, char **files)
{
	printf("extern const char %s[];\nconst char %s[] = {\n", name, name);
	for (int i = 0; i < n; i++)
		put_bytes(files[i]);
	printf("0};\n");
}

static void
put_table(const char *name, const char *root, int n, char **files)
{
	size_t cut = strlen(root);

	printf("#include \"../../compiler/embed.h\"\n");
	for (int i = 0; i < n; i++) {
		printf("static const unsigned char file%d[] = {\n", i);
		if (put_bytes(files[i]) == 0)
			fatal(files[i], "is empty");
		printf("};\n");
	}
	printf("const EmbeddedFile %s[] = {\n", name);
	for (int i = 0; i < n; i++) {
		if (strncmp(files[i], root, cut) != 0)
			fatal(files[i], "lies outside the root");
		printf(
		    "{\"%s\", file%d, sizeof file%d},\n", files[i] + cut, i, i);
	}
	printf("{NULL, NULL, 0}};\n");
}

int
main(int argc, char **argv)
{
	if (argc > 3 && strcmp(argv[1], "text") == 0)
		put_text(argv[2], argc - 3, argv + 3);
	else if (argc > 4 && strcmp(argv[1], "table") == 0)
		put_table(argv[2], argv[3], argc - 4, argv + 4);
	else
		fatal("usage", "text NAME FILE... | table NAME ROOT FILE...");
	if (fflush(stdout) != 0 || ferror(stdout))
		fatal("stdout", "cannot be written");
	return 0;
}
