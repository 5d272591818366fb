/* Row family: a workgroup is one row of tokens, or of logits wanted. */
#include "emit.h"

/* The rule that tells most about the region, or its first op. */
static const char *
row_name(const Region *r)
{
	const char *name = NULL;

	for (int i = 0; fuse_rules[i]; i++)
		if (r->rules & 1u << i)
			name = fuse_rules[i];
	return name ? name : ops[r->ops[0]->op].name;
}

void
emit_row(Kernel *k)
{
	const Node *first = k->r->ops[0];
	bool wanted = first->op != OP_APPEND && first->type.dim[0] == DIM_R;
	Scope s = {wanted ? "r" : "t", NULL, 1, false};

	k->grid = (Grid){wanted ? SYM_R : SYM_T, 1, 1, 0};
	k->stem = arena_printf(k->arena, "%s_%llu", row_name(k->r),
	    (unsigned long long)type_row(&first->type));
	text_line(&k->body, "const uint32_t %s = wg;", s.row);
	emit_scope(k, &s, NULL);
}
