/* Regions: which ops one kernel computes.
 *
 * Every op starts as a region of its own. Ops are visited in order, and each
 * joins what fuse.def allows. Two regions may be joined only when no third one
 * lies between them. */
#include <string.h>

#include "lower.h"

typedef enum RuleId {
#define RULE(name) RULE_##name,
#include "fuse.def"
#undef RULE
	RULE_COUNT
} RuleId;

const char *const fuse_rules[] = {
#define RULE(name) #name,
#include "fuse.def"
#undef RULE
    NULL};

uint32_t
fuse_bit(const char *name)
{
	for (int i = 0; i < RULE_COUNT; i++)
		if (strcmp(fuse_rules[i], name) == 0)
			return 1u << i;
	return 0;
}

/* Readers of each node, as one array cut by first. */
typedef struct Users {
	uint32_t *first; /* [nodes + 1] */
	Node **list;
} Users;

typedef struct Fuser {
	Lowered *l;
	uint32_t rules;
	Users users;
	Node **partner; /* by node id: the other weight of a gate-up pair */
	uint8_t *seen;  /* by node id, scratch of between() */
	Node **stack;
} Fuser;

static Users
find_users(const Graph *g)
{
	Users u;
	uint32_t *fill;

	u.first = arena_array(g->arena, g->count + 1, sizeof *u.first);
	for (uint32_t i = 0; i < g->count; i++)
		for (int k = 0; k < ops[g->nodes[i]->op].inputs; k++)
			u.first[g->nodes[i]->in[k]->id + 1]++;
	for (uint32_t i = 0; i < g->count; i++)
		u.first[i + 1] += u.first[i];
	u.list = arena_array(g->arena, u.first[g->count] + 1, sizeof *u.list);
	fill = arena_array(g->arena, g->count + 1, sizeof *fill);
	for (uint32_t i = 0; i < g->count; i++)
		for (int k = 0; k < ops[g->nodes[i]->op].inputs; k++) {
			uint32_t from = g->nodes[i]->in[k]->id;

			u.list[u.first[from] + fill[from]++] = g->nodes[i];
		}
	return u;
}

static uint32_t
use_count(const Fuser *f, const Node *n)
{
	return f->users.first[n->id + 1] - f->users.first[n->id];
}

/* The only reader of n, or NULL. */
static Node *
only_user(const Fuser *f, const Node *n)
{
	return use_count(f, n) == 1 ? f->users.list[f->users.first[n->id]]
				    : NULL;
}

static Region *
region_of(const Fuser *f, Node *n)
{
	uint32_t r = f->l->region_of[root_of(n)->id];

	return r == NO_REGION ? NULL : &f->l->regions[r];
}

/* ---- is there a third region between two? ---- */

enum { SEEN_NEAR = 1, SEEN_FAR = 2 };

static uint32_t
push(Fuser *f, uint32_t n, Node *node, uint8_t mark)
{
	if (f->seen[node->id] & mark)
		return n;
	f->seen[node->id] |= mark;
	f->stack[n] = node;
	return n + 1;
}

static uint32_t
push_users(Fuser *f, uint32_t n, const Node *node, uint8_t mark)
{
	for (uint32_t u = f->users.first[node->id];
	     u < f->users.first[node->id + 1]; u++)
		n = push(f, n, f->users.list[u], mark);
	return n;
}

/* Whether a value of a reaches b through an op outside both. Other regions are
 * crossed whole: entering anywhere reaches all that they make. */
static bool
reaches(Fuser *f, const Region *a, const Region *b)
{
	uint32_t n = 0;

	memset(f->seen, 0, f->l->graph->count);
	for (uint32_t i = 0; i < a->n_ops; i++)
		n = push_users(f, n, a->ops[i], SEEN_NEAR);
	while (n > 0) {
		Node *at = f->stack[--n];
		bool far = f->seen[at->id] & SEEN_FAR;
		Region *r;

		if (ops[at->op].kind == KIND_VIEW) {
			n = push_users(f, n, at, far ? SEEN_FAR : SEEN_NEAR);
			continue;
		}
		r = region_of(f, at);
		if (r == b && far)
			return true;
		if (r == a || r == b)
			continue;
		for (uint32_t i = 0; i < r->n_ops; i++)
			n = push_users(f, n, r->ops[i], SEEN_FAR);
	}
	return false;
}

/* ---- joining ---- */

static void
note(Fuser *f, Region *r, RuleId rule, const Node *op, Why why)
{
	WhyNot *w = arena_alloc(f->l->graph->arena, sizeof *w);

	w->rule = fuse_rules[rule];
	w->op = op;
	w->why = why;
	w->next = r->why;
	r->why = w;
}

/* Ops of both in the order of the graph. */
static Node **
merge_ops(Arena *a, const Region *x, const Region *y)
{
	Node **out = arena_array(a, x->n_ops + y->n_ops, sizeof *out);
	uint32_t i = 0, j = 0;

	while (i < x->n_ops || j < y->n_ops)
		if (j == y->n_ops ||
		    (i < x->n_ops && x->ops[i]->id < y->ops[j]->id)) {
			out[i + j] = x->ops[i];
			i++;
		} else {
			out[i + j] = y->ops[j];
			j++;
		}
	return out;
}

/* Moves the ops of from into to, which keeps its family. */
static void
absorb(Fuser *f, Region *to, Region *from, RuleId rule)
{
	WhyNot **end = &to->why;

	to->ops = merge_ops(f->l->graph->arena, to, from);
	to->n_ops += from->n_ops;
	to->rules |= from->rules | 1u << rule;
	while (*end)
		end = &(*end)->next;
	*end = from->why;
	for (uint32_t i = 0; i < from->n_ops; i++)
		f->l->region_of[from->ops[i]->id] =
		    (uint32_t)(to - f->l->regions);
	from->n_ops = 0;
}

/* Joins from into to under rule unless why says no or a third region lies
 * between; notes the reason otherwise. */
static bool
try_join(
    Fuser *f, Region *to, Region *from, RuleId rule, const Node *op, Why why)
{
	if (to == from)
		return true;
	if (!(f->rules & 1u << rule))
		why = WHY_DISABLED;
	else if (why == WHY_NONE &&
		 (reaches(f, to, from) || reaches(f, from, to)))
		why = WHY_CYCLE;
	if (why == WHY_NONE)
		absorb(f, to, from, rule);
	else
		note(f, from, rule, op, why);
	return why == WHY_NONE;
}

/* ---- tests of FUSE rows: may op, whose input in is made in r, join r? ---- */

static int64_t
row_symbol(const Node *n)
{
	return n->op == OP_APPEND ? DIM_T : n->type.dim[0];
}

static Why
test_row(const Fuser *f, const Region *r, const Node *op, Node *in)
{
	(void)f;
	(void)in;
	return row_symbol(r->ops[0]) == row_symbol(op) ? WHY_NONE : WHY_ROWS;
}

static Why
test_pair(const Fuser *f, const Region *r, const Node *op, Node *in)
{
	if (op->op == OP_QUANTISE) {
		if (in->op != OP_MUL)
			return WHY_PAIR;
		return last_axis(op) % 32 == 0 ? WHY_NONE : WHY_BLOCK;
	}
	if (op->op == OP_SILU)
		return f->partner[in->id] ? WHY_NONE : WHY_PAIR;
	for (int k = 0; k < 2; k++)
		if (region_of(f, op->in[k]) != r)
			return WHY_PAIR;
	return f->partner[op->id] ? WHY_NONE : WHY_PAIR;
}

/* Head size of the norms already in a conv's region, or 0. */
static uint64_t
conv_head(const Region *r)
{
	for (uint32_t i = 0; i < r->n_ops; i++)
		if (r->ops[i]->op == OP_L2_NORM)
			return last_axis(r->ops[i]);
	return 0;
}

static Why
test_conv(const Fuser *f, const Region *r, const Node *op, Node *in)
{
	View v = view_of(in);
	uint64_t head = conv_head(r);

	(void)f;
	if (op->op == OP_SILU)
		return in->op == OP_CONV ? WHY_NONE : WHY_VIEW;
	if (op->op == OP_SCALE)
		return in->op == OP_L2_NORM ? WHY_NONE : WHY_VIEW;
	if (v.root->op != OP_SILU || v.inner != v.count)
		return WHY_VIEW;
	if (head != 0 && head != last_axis(op))
		return WHY_HEADS;
	head = last_axis(op);
	if (v.offset % head != 0 || type_row(&v.root->type) % head != 0)
		return WHY_HEADS;
	return WHY_NONE;
}

/* Head size of the delta rule or attention that r is built on. */
static uint64_t
head_size(const Region *r)
{
	for (uint32_t i = 0; i < r->n_ops; i++)
		if (ops[r->ops[i]->op].kind == KIND_SEQ)
			return last_axis(r->ops[i]);
	return 0;
}

/* Whether the pieces of a row of n can be cut at every head. */
static bool
cut_by_heads(Node *n, uint64_t row, uint64_t head)
{
	View v = view_of(n);

	return v.count == row && v.inner % head == 0;
}

static Why
test_head(const Fuser *f, const Region *r, const Node *op, Node *in)
{
	uint64_t head = head_size(r), row = view_of(in).count;

	(void)f;
	if (!cut_by_heads(in, row, head))
		return WHY_VIEW;
	if (op->op == OP_RMS_NORM)
		return last_axis(op) == head ? WHY_NONE : WHY_WHOLE_ROW;
	if (op->op == OP_QUANTISE)
		return head % 32 == 0 ? WHY_NONE : WHY_BLOCK;
	for (int k = 0; k < 2; k++)
		if (!cut_by_heads(op->in[k], row, head))
			return WHY_OPERAND;
	return WHY_NONE;
}

typedef struct FuseRow {
	RuleId rule;
	Family family;
	Op op;
	Why (*test)(const Fuser *, const Region *, const Node *, Node *);
} FuseRow;

static const FuseRow fuse_rows[] = {
#define FUSE(rule, FAMILY, OP, test) {RULE_##rule, FAM_##FAMILY, OP_##OP, test},
#include "fuse.def"
#undef FUSE
};

static const FuseRow *
find_row(Family family, Op op)
{
	for (size_t i = 0; i < sizeof fuse_rows / sizeof fuse_rows[0]; i++)
		if (fuse_rows[i].family == family && fuse_rows[i].op == op)
			return &fuse_rows[i];
	return NULL;
}

/* Lets n join the region that makes its input in, when that is of a row family
 * (rows) or not. */
static void
join_producer(Fuser *f, Node *n, Node *in, bool rows)
{
	Region *p = region_of(f, in), *mine = region_of(f, n);
	const FuseRow *row;

	if (!p || p == mine || (p->family == FAM_ROW) != rows ||
	    mine->family != FAM_ROW)
		return;
	row = find_row(p->family, n->op);
	if (row)
		try_join(f, p, mine, row->rule, n, row->test(f, p, n, in));
}

/* Special families first: rows that n brought along could not follow it. */
static void
join_producers(Fuser *f, Node *n)
{
	for (int rows = 0; rows < 2; rows++)
		for (int k = 0; k < ops[n->op].inputs; k++)
			join_producer(f, n, n->in[k], rows);
}

/* ---- joins of SIBLINGS rows ---- */

static void
join_segments(Fuser *f, Node *n, RuleId rule)
{
	const Node *x = n->in[0];

	if (f->partner[n->id])
		return;
	for (uint32_t u = f->users.first[x->id]; u < f->users.first[x->id + 1];
	     u++) {
		Node *m = f->users.list[u];

		if (m->id >= n->id)
			break;
		if (m->op != n->op || m->in[0] != x || f->partner[m->id])
			continue;
		try_join(
		    f, region_of(f, m), region_of(f, n), rule, n, WHY_NONE);
		return;
	}
}

static void
join_qkv(Fuser *f, Node *n, RuleId rule)
{
	Region *first = NULL;

	for (int k = 0; k < 3; k++) {
		Region *r = region_of(f, n->in[k]);

		if (!r || r->family != FAM_ROW)
			continue;
		if (!first)
			first = r;
		else
			try_join(f, first, r, rule, n, WHY_NONE);
	}
}

/* Whether r is point ops on one number for each of heads. */
static bool
is_gate(const Region *r, uint64_t heads)
{
	for (uint32_t i = 0; i < r->n_ops; i++)
		if (ops[r->ops[i]->op].kind != KIND_POINT ||
		    type_row(&r->ops[i]->type) != heads)
			return false;
	return true;
}

static void
join_gates(Fuser *f, Node *n, RuleId rule)
{
	enum { DECAY = 3, BETA = 4 };

	for (int k = DECAY; k <= BETA; k++) {
		Region *r = region_of(f, n->in[k]);
		uint64_t heads = (uint64_t)n->type.dim[1];

		if (r && r->family == FAM_ROW)
			try_join(f, region_of(f, n), r, rule, n,
			    is_gate(r, heads) ? WHY_NONE : WHY_OPERAND);
	}
}

/* A gate (silu or sigmoid alone) whose product joined a head's region goes
 * there too. */
static void
join_gate_of_product(Fuser *f, Node *n)
{
	Region *mine = region_of(f, n);
	RuleId rule = mine->family == FAM_DELTA ? RULE_gated_norm_quantise
						: RULE_gate_quantise;

	if (n->op != OP_MUL ||
	    (mine->family != FAM_DELTA && mine->family != FAM_ATTENTION))
		return;
	for (int k = 0; k < 2; k++) {
		Region *r = region_of(f, n->in[k]);

		if (r && r != mine && r->family == FAM_ROW && r->n_ops == 1 &&
		    ops[r->ops[0]->op].inputs == 1 &&
		    ops[r->ops[0]->op].kind == KIND_POINT &&
		    cut_by_heads(
			r->ops[0]->in[0], view_of(n).count, head_size(mine)))
			try_join(f, mine, r, rule, n, WHY_NONE);
	}
}

static void
join_siblings(Fuser *f, Node *n)
{
#define SIBLINGS(rule, OP, join)                                               \
	if (n->op == OP_##OP)                                                  \
		join(f, n, RULE_##rule);
#include "fuse.def"
#undef SIBLINGS
}

/* ---- gate-up pairs ---- */

static bool
same_product(const Node *a, const Node *b)
{
	if (a->op != b->op || (a->op != OP_LINEAR && a->op != OP_EXPERTS))
		return false;
	if (a->in[0] != b->in[0] || !type_equal(&a->type, &b->type))
		return false;
	return a->op == OP_LINEAR || a->in[2] == b->in[2];
}

/* mul(silu(a x), b x), where nothing else reads the parts. */
static void
find_pair(Fuser *f, Node *mul)
{
	for (int k = 0; k < 2; k++) {
		Node *silu = mul->in[k], *up = mul->in[1 - k];
		Node *gate = silu->in[0];

		if (silu->op != OP_SILU || !same_product(gate, up) ||
		    only_user(f, silu) != mul || only_user(f, up) != mul ||
		    only_user(f, gate) != silu)
			continue;
		f->partner[gate->id] = up;
		f->partner[up->id] = gate;
		f->partner[mul->id] = gate;
	}
}

/* The weights of a pair become one region before anything else joins. */
static void
find_pairs(Fuser *f)
{
	const Graph *g = f->l->graph;

	if (!(f->rules & 1u << RULE_gate_up_silu))
		return;
	for (uint32_t i = 0; i < g->count; i++)
		if (g->nodes[i]->op == OP_MUL)
			find_pair(f, g->nodes[i]);
	for (uint32_t i = 0; i < g->count; i++) {
		Node *n = g->nodes[i], *other = f->partner[i];

		if (other && n->op == other->op && other->id < i)
			try_join(f, region_of(f, other), region_of(f, n),
			    RULE_gate_up_silu, n, WHY_NONE);
	}
}

/* ---- start ---- */

Family
op_family(Op op)
{
	switch (ops[op].kind) {
	case KIND_LEAF:
	case KIND_VIEW:
		return FAM_COUNT;
	case KIND_CONTRACT:
		return op == OP_EXPERTS ? FAM_EXPERTS : FAM_MATMUL;
	default:
		return op == OP_CONV         ? FAM_CONV
		       : op == OP_DELTA_RULE ? FAM_DELTA
		       : op == OP_ATTENTION  ? FAM_ATTENTION
					     : FAM_ROW;
	}
}

static void
start_regions(Lowered *l)
{
	Graph *g = l->graph;

	l->regions = arena_array(g->arena, g->count, sizeof *l->regions);
	l->region_of = arena_array(g->arena, g->count, sizeof *l->region_of);
	for (uint32_t i = 0; i < g->count; i++) {
		Node *n = g->nodes[i];
		Region *r = &l->regions[l->n_regions];

		l->region_of[i] = NO_REGION;
		if (op_family(n->op) == FAM_COUNT)
			continue;
		l->region_of[i] = l->n_regions++;
		r->family = op_family(n->op);
		r->n_ops = 1;
		r->ops = arena_array(g->arena, 1, sizeof *r->ops);
		r->ops[0] = n;
	}
}

/* Drops the regions that others took in. */
static void
compact(Lowered *l)
{
	uint32_t n = 0;

	for (uint32_t r = 0; r < l->n_regions; r++) {
		if (l->regions[r].n_ops == 0)
			continue;
		for (uint32_t i = 0; i < l->regions[r].n_ops; i++)
			l->region_of[l->regions[r].ops[i]->id] = n;
		l->regions[n++] = l->regions[r];
	}
	l->n_regions = n;
}

void
fuse(Lowered *l, const LowerOptions *o)
{
	Graph *g = l->graph;
	Fuser f = {.l = l, .rules = o->rules};

	start_regions(l);
	f.users = find_users(g);
	f.partner = arena_array(g->arena, g->count, sizeof *f.partner);
	f.seen = arena_array(g->arena, g->count, sizeof *f.seen);
	f.stack = arena_array(g->arena, 2 * (size_t)g->count, sizeof *f.stack);
	find_pairs(&f);
	for (uint32_t i = 0; i < g->count; i++) {
		Node *n = g->nodes[i];

		if (l->region_of[i] == NO_REGION)
			continue;
		join_producers(&f, n);
		join_siblings(&f, n);
		join_gate_of_product(&f, n);
	}
	compact(l);
}
