#include "options.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "suggest.h"

enum {
#define COMMAND(NAME, name, least, most, operands, summary, details)           \
	FOR_##NAME = 1 << CMD_##NAME,
#include "options.def"
#undef COMMAND
	FOR_PLANS = FOR_RUN | FOR_LOGITS | FOR_PERPLEXITY | FOR_VERIFY |
		    FOR_INSPECT,
	FOR_GRAPHS = FOR_COMPILE | FOR_CHECK | FOR_PLANS,
	FOR_MODELS = FOR_RUN | FOR_LOGITS | FOR_PERPLEXITY | FOR_VERIFY,
	FOR_ALL = (1 << CMD_COUNT) - 1
};

static const struct {
	const char *name;
	int least, most;
	const char *operands, *summary, *details;
} commands[CMD_COUNT] = {
#define COMMAND(NAME, name, least, most, operands, summary, details)           \
	{#name, least, most, operands, summary, details},
#include "options.def"
#undef COMMAND
};

typedef enum OptionType {
	TYPE_FLAG,
	TYPE_TEXT,
	TYPE_CHOICE,
	TYPE_COUNT,
	TYPE_SEED,
	TYPE_BYTES,
	TYPE_REAL,
	TYPE_LIST
} OptionType;

typedef struct OptionInfo {
	const char *spelling;
	OptionType type;
	const char *argument;
	double low, high;
	unsigned commands;
	const char *help;
	size_t offset, given; /* into Options */
} OptionInfo;

static const OptionInfo options[] = {
#define OPTION(field, spelling, TYPE, argument, low, high, commands, help)     \
	{spelling, TYPE_##TYPE, argument, low, high, commands, help,           \
	    offsetof(Options, field), offsetof(Options, given.field)},
#include "options.def"
#undef OPTION
};

enum { OPTION_COUNT = sizeof options / sizeof options[0] };

/* ---- commands ---- */

Command
command_by_name(const char *name)
{
	int c = 0;

	while (c < CMD_COUNT && strcmp(commands[c].name, name) != 0)
		c++;
	return (Command)c;
}

const char *
command_name(Command c)
{
	return commands[c].name;
}

const char *
command_suggestion(const char *name, char *text)
{
	Suggestion s;
	int c;

	suggest_start(&s, name);
	for (c = 0; c < CMD_COUNT; c++)
		suggest_offer(&s, commands[c].name);
	return suggest_text(&s, text);
}

/* ---- values ---- */

static bool
wrong_value(const OptionInfo *o, const char *value, char *why)
{
	int n = snprintf(why, OPTIONS_WHY, "%s '%.100s': ", o->spelling, value);
	char *rest = why + n;
	size_t room = (size_t)(OPTIONS_WHY - n);

	if (o->type == TYPE_CHOICE)
		snprintf(rest, room, "one of %s is expected", o->argument);
	else if (o->type == TYPE_SEED)
		snprintf(rest, room, "a whole number below 2^64 is expected");
	else if (o->type == TYPE_BYTES)
		snprintf(rest, room,
		    "a number of bytes is expected, such as 24G (K, M, G and T "
		    "are powers of 1024)");
	else if (o->type == TYPE_COUNT && o->high == UINT32_MAX)
		snprintf(rest, room, "a whole number from %.0f on is expected",
		    o->low);
	else
		snprintf(rest, room, "a %snumber from %.0f to %.0f is expected",
		    o->type == TYPE_COUNT ? "whole " : "", o->low, o->high);
	return false;
}

static bool
is_choice(const char *words, const char *value)
{
	size_t n = strlen(value);

	while (n > 0) {
		if (strncmp(words, value, n) == 0 &&
		    (words[n] == '|' || words[n] == '\0'))
			return true;
		words = strchr(words, '|');
		if (!words)
			break;
		words++;
	}
	return false;
}

static bool
parse_whole(const char *value, uint64_t *out)
{
	char *end;

	if (value[0] < '0' || value[0] > '9')
		return false;
	errno = 0;
	*out = strtoull(value, &end, 10);
	return errno == 0 && *end == '\0';
}

/* A whole number above 0, then perhaps K, M, G or T. */
static bool
parse_bytes(const char *value, uint64_t *out)
{
	static const char units[] = "KMGT";
	size_t digits = strspn(value, "0123456789");
	const char *unit = strchr(units, value[digits]);
	int shift = 0;
	char whole[24];

	if (digits >= sizeof whole || !unit)
		return false;
	if (value[digits]) {
		shift = 10 * (int)(unit - units + 1);
		if (value[digits + 1])
			return false;
	}
	snprintf(whole, sizeof whole, "%.*s", (int)digits, value);
	if (!parse_whole(whole, out) || *out == 0 ||
	    *out > (uint64_t)INT64_MAX >> shift)
		return false;
	*out <<= shift;
	return true;
}

static bool
parse_real(const char *value, float *out)
{
	char *end;

	*out = strtof(value, &end);
	return end != value && *end == '\0' && isfinite(*out);
}

static bool
append(TextList *list, const char *value, char *why)
{
	const char **more = realloc(list->at, (list->count + 1) * sizeof *more);

	if (!more) {
		snprintf(why, OPTIONS_WHY, "no memory");
		return false;
	}
	list->at = more;
	list->at[list->count++] = value;
	return true;
}

static bool
set_number(const OptionInfo *o, void *field, const char *value, char *why)
{
	uint64_t whole = 0;
	float real = 0;
	bool ok = o->type == TYPE_REAL ? parse_real(value, &real)
				       : parse_whole(value, &whole);
	double number = o->type == TYPE_REAL ? (double)real : (double)whole;

	if (!ok ||
	    (o->type != TYPE_SEED && (number < o->low || number > o->high)))
		return wrong_value(o, value, why);
	if (o->type == TYPE_REAL)
		*(float *)field = real;
	else if (o->type == TYPE_SEED)
		*(uint64_t *)field = whole;
	else
		*(uint32_t *)field = (uint32_t)whole;
	return true;
}

/* value is NULL for a flag. */
static bool
set_option(const OptionInfo *o, Options *to, const char *value, char *why)
{
	void *field = (char *)to + o->offset;

	*(bool *)((char *)to + o->given) = true;
	switch (o->type) {
	case TYPE_FLAG:
		*(bool *)field = true;
		return true;
	case TYPE_CHOICE:
		if (!is_choice(o->argument, value))
			return wrong_value(o, value, why);
		*(const char **)field = value;
		return true;
	case TYPE_TEXT:
		*(const char **)field = value;
		return true;
	case TYPE_BYTES:
		return parse_bytes(value, field) || wrong_value(o, value, why);
	case TYPE_LIST:
		return append(field, value, why);
	default:
		return set_number(o, field, value, why);
	}
}

/* ---- words ---- */

/* The option that word is: all of it, or "name=value". *value is then what
 * is joined to it, else NULL. */
static const OptionInfo *
find_option(Command c, const char *word, const char **value)
{
	int i;

	for (i = 0; i < OPTION_COUNT; i++) {
		const OptionInfo *o = &options[i];
		size_t n = strlen(o->spelling);
		if (!(o->commands & 1u << c) ||
		    strncmp(o->spelling, word, n) != 0 ||
		    (word[n] != '\0' && word[n] != '='))
			continue;
		*value = word[n] ? word + n + 1 : NULL;
		return o;
	}
	return NULL;
}

static bool
unknown_option(Command c, const char *word, char *why)
{
	char text[SUGGEST_TEXT], name[SUGGEST_LENGTH];
	Suggestion s;
	int i, elsewhere = -1;

	snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
	suggest_start(&s, name);
	for (i = 0; i < OPTION_COUNT; i++) {
		if (options[i].commands & 1u << c)
			suggest_offer(&s, options[i].spelling);
		else if (strcmp(options[i].spelling, name) == 0)
			elsewhere = i;
	}
	if (elsewhere >= 0)
		snprintf(why, OPTIONS_WHY, "%s is no option of %s",
		    options[elsewhere].spelling, commands[c].name);
	else
		snprintf(why, OPTIONS_WHY, "unknown option '%.100s'%s", name,
		    suggest_text(&s, text));
	return false;
}

/* Takes the option at argv[*i] and its value, and moves *i past both. */
static bool
take_option(Options *o, int argc, char *const *argv, int *i, char *why)
{
	const char *word = argv[(*i)++], *value;
	const OptionInfo *info = find_option(o->command, word, &value);

	if (!info)
		return unknown_option(o->command, word, why);
	if (info->type == TYPE_FLAG && value) {
		snprintf(why, OPTIONS_WHY, "%s takes no value", info->spelling);
		return false;
	}
	if (info->type != TYPE_FLAG && !value) {
		if (*i == argc) {
			snprintf(why, OPTIONS_WHY, "%s needs %s",
			    info->spelling, info->argument);
			return false;
		}
		value = argv[(*i)++];
	}
	return set_option(info, o, value, why);
}

static bool
take_operand(Options *o, const char *word, char *why)
{
	if (o->operands == commands[o->command].most) {
		snprintf(
		    why, OPTIONS_WHY, "'%.100s' is one operand too many", word);
		return false;
	}
	o->operand[o->operands++] = word;
	return true;
}

bool
options_parse(Command c, int argc, char *const *argv, Options *o, char *why)
{
	bool only_operands = false;
	int i = 0;

	*o = (Options){.command = c, .count = 256};
	while (i < argc) {
		const char *word = argv[i];

		if (!only_operands && strcmp(word, "--") == 0) {
			only_operands = true;
			i++;
		} else if (!only_operands && word[0] == '-' && word[1]) {
			if (!take_option(o, argc, argv, &i, why))
				return false;
		} else if (!take_operand(o, argv[i++], why)) {
			return false;
		}
	}
	if (o->help || o->version || o->operands >= commands[c].least)
		return true;
	snprintf(why, OPTIONS_WHY, "%s needs %s", commands[c].name,
	    commands[c].operands);
	return false;
}

void
options_free(Options *o)
{
	int i;

	for (i = 0; i < OPTION_COUNT; i++) {
		TextList *list = (void *)((char *)o + options[i].offset);

		if (options[i].type != TYPE_LIST)
			continue;
		free(list->at);
		*list = (TextList){0};
	}
}

const char *
options_of_compile(const Options *o)
{
	int i;

	for (i = 0; i < OPTION_COUNT; i++)
		if (options[i].commands == FOR_GRAPHS &&
		    *(const bool *)((const char *)o + options[i].given))
			return options[i].spelling;
	return NULL;
}

/* ---- help ---- */

static void
print_option(const OptionInfo *o, FILE *out)
{
	int n = fprintf(out, "  %s%s%s", o->spelling, o->argument[0] ? " " : "",
	    o->argument);

	fprintf(out, "%*s%s\n", n < 25 ? 25 - n : 1, "", o->help);
}

static void
print_options(unsigned of, bool common, FILE *out)
{
	int i;

	for (i = 0; i < OPTION_COUNT; i++)
		if (options[i].commands & of &&
		    (options[i].commands == FOR_ALL) == common)
			print_option(&options[i], out);
}

void
help_all(FILE *out)
{
	int c;

	fputs("usage: ingot COMMAND ...\n\n"
	      "Compiles language models ahead of time, and runs them.\n\n",
	    out);
	for (c = 0; c < CMD_COUNT; c++)
		fprintf(
		    out, "  %-23s%s\n", commands[c].name, commands[c].summary);
	fputs("\n'ingot COMMAND --help' says more. Everywhere:\n\n", out);
	print_options(FOR_ALL, true, out);
	fputs("\nExit status: 0 done, 1 something given or found is wrong,\n"
	      "2 wrong usage, 3 an op has no kernel on the target, 4 check\n"
	      "found too little memory, 5 verify found a difference, 70 a fault\n"
	      "of Ingot, 130 interrupted.\n",
	    out);
}

void
help_command(Command c, FILE *out)
{
	fprintf(out, "usage: ingot %s%s%s [option ...]\n\n", commands[c].name,
	    commands[c].operands[0] ? " " : "", commands[c].operands);
	print_options(1u << c, false, out);
	fputs("\nEverywhere:\n\n", out);
	print_options(1u << c, true, out);
	if (commands[c].details[0])
		fprintf(out, "\n%s", commands[c].details);
}
