/* ingot ops, ingot targets */
#include <string.h>

#include "../lower/lower.h"
#include "open.h"
#include "table.h"

static const char *
kind_name(OpKind kind)
{
	switch (kind) {
	case KIND_LEAF:
		return "leaf";
	case KIND_VIEW:
		return "view";
	case KIND_POINT:
		return "point";
	case KIND_ROW:
		return "row";
	case KIND_GATHER:
		return "gather";
	case KIND_CONTRACT:
		return "contract";
	case KIND_SEQ:
		return "sequence";
	}
	return "";
}

/* "eps f32"; an optional one in brackets. */
static json_t *
attributes(Op op)
{
	static const char *const types[] = {"u32", "f32", "f64", "flag"};
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < attr_count; i++) {
		const AttrInfo *a = &attrs[i];

		if (a->op == op)
			json_array_append_new(list,
			    json_sprintf(a->required ? "%s %s" : "[%s %s]",
				a->name, types[a->type]));
	}
	return list;
}

/* The families whose regions can hold op: its own, and those that fuse it. */
static json_t *
families(Op op)
{
	static const struct {
		Family family;
		Op op;
	} fused[] = {
#define FUSE(rule, FAMILY, OP, test) {FAM_##FAMILY, OP_##OP},
#include "../lower/fuse.def"
#undef FUSE
	};
	json_t *list = json_array();
	size_t i;

	if (op_family(op) == FAM_COUNT)
		return list;
	json_array_append_new(list, json_string(family_names[op_family(op)]));
	for (i = 0; i < sizeof fused / sizeof fused[0]; i++)
		if (fused[i].op == op && fused[i].family != op_family(op))
			json_array_append_new(
			    list, json_string(family_names[fused[i].family]));
	return list;
}

int
cmd_ops(const Options *o)
{
	static const Column columns[] = {{"name", "op"}, {"kind", "kind"},
	    {"inputs", "inputs"}, {"attributes", "attributes"}};
	static const Column with_families[] = {{"name", "op"}, {"kind", "kind"},
	    {"inputs", "inputs"}, {"families", "computed by"}};
	json_t *rows;
	int op;

	if (o->target && check_target(o->target, strlen(o->target)))
		return EXIT_USAGE;
	rows = json_array();
	for (op = 0; op < OP_COUNT; op++)
		json_array_append_new(rows,
		    json_pack("{s:s, s:s, s:i, s:o, s:o}", "name", ops[op].name,
			"kind", kind_name(ops[op].kind), "inputs",
			ops[op].inputs, "attributes", attributes((Op)op),
			"families", families((Op)op)));
	table_print(stdout, rows, o->target ? with_families : columns, 4);
	json_decref(rows);
	return EXIT_DONE;
}

int
cmd_targets(const Options *o)
{
	static const Column columns[] = {{"name", "target"}, {"isa", "isa"},
	    {"lanes", "f32 lanes"}, {"tile", "rows of a tile"}};
	json_t *rows = json_array();
	size_t i;

	(void)o;
	for (i = 0; i < target_count; i++) {
		if (!targets[i].kernels)
			continue;
		json_array_append_new(rows,
		    json_pack("{s:s, s:s, s:i, s:i}", "name", targets[i].name,
			"isa", targets[i].isa, "lanes", (int)targets[i].lanes,
			"tile", (int)targets[i].tile));
	}
	table_print(stdout, rows, columns, 4);
	json_decref(rows);
	return EXIT_DONE;
}
