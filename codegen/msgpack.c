#include "msgpack.h"

typedef enum Kind { NUMBER, OTHER, TEXT, BYTES, ARRAY, MAP } Kind;

/* The head of a value: its number, or length in bytes, values or pairs. */
typedef struct Head {
	Kind kind;
	uint64_t n;
} Head;

/* A big-endian number of n bytes. */
static uint64_t
take(Msg *m, unsigned n)
{
	uint64_t value = 0;

	if (m->bad || (size_t)(m->end - m->at) < n) {
		m->bad = true;
		return 0;
	}
	while (n-- > 0)
		value = value << 8 | *m->at++;
	return value;
}

/* Heads from 0xC0 to 0xDF. */
static Head
take_wide(Msg *m, unsigned tag)
{
	switch (tag) {
	case 0xC0: /* nil, false, true */
	case 0xC2:
	case 0xC3:
		return (Head){OTHER, 0};
	case 0xC4:
	case 0xC5:
	case 0xC6:
		return (Head){BYTES, take(m, 1u << (tag - 0xC4))};
	case 0xC7: /* extensions have a type behind the length */
	case 0xC8:
	case 0xC9:
		return (Head){BYTES, take(m, 1u << (tag - 0xC7)) + 1};
	case 0xCA: /* floats */
	case 0xCB:
		take(m, 4u << (tag - 0xCA));
		return (Head){OTHER, 0};
	case 0xCC:
	case 0xCD:
	case 0xCE:
	case 0xCF:
		return (Head){NUMBER, take(m, 1u << (tag - 0xCC))};
	case 0xD0: /* signed: written only when negative */
	case 0xD1:
	case 0xD2:
	case 0xD3:
		take(m, 1u << (tag - 0xD0));
		return (Head){OTHER, 0};
	case 0xD4:
	case 0xD5:
	case 0xD6:
	case 0xD7:
	case 0xD8:
		return (Head){BYTES, (1u << (tag - 0xD4)) + 1};
	case 0xD9:
	case 0xDA:
	case 0xDB:
		return (Head){TEXT, take(m, 1u << (tag - 0xD9))};
	case 0xDC:
	case 0xDD:
		return (Head){ARRAY, take(m, 2u << (tag - 0xDC))};
	case 0xDE:
	case 0xDF:
		return (Head){MAP, take(m, 2u << (tag - 0xDE))};
	default:
		m->bad = true;
		return (Head){OTHER, 0};
	}
}

static Head
take_head(Msg *m)
{
	unsigned tag = (unsigned)take(m, 1);
	Head h;

	if (tag < 0x80)
		h = (Head){NUMBER, tag};
	else if (tag < 0x90)
		h = (Head){MAP, tag & 15};
	else if (tag < 0xA0)
		h = (Head){ARRAY, tag & 15};
	else if (tag < 0xC0)
		h = (Head){TEXT, tag & 31};
	else if (tag < 0xE0)
		h = take_wide(m, tag);
	else
		h = (Head){OTHER, 0};
	/* A byte at least for each byte or value that is promised. */
	if (h.kind >= TEXT && h.n > (uint64_t)(m->end - m->at))
		m->bad = true;
	return m->bad ? (Head){OTHER, 0} : h;
}

static uint64_t
expect(Msg *m, Kind kind)
{
	Head h = take_head(m);

	if (h.kind != kind)
		m->bad = true;
	return m->bad ? 0 : h.n;
}

uint32_t
msg_array(Msg *m)
{
	return (uint32_t)expect(m, ARRAY);
}

uint32_t
msg_map(Msg *m)
{
	return (uint32_t)expect(m, MAP);
}

uint64_t
msg_uint(Msg *m)
{
	return expect(m, NUMBER);
}

const char *
msg_text(Msg *m, size_t *length)
{
	const char *text;

	*length = (size_t)expect(m, TEXT);
	text = m->bad ? "" : (const char *)m->at;
	m->at += *length;
	return text;
}

void
msg_skip(Msg *m)
{
	uint64_t values = 1;

	while (values > 0 && !m->bad) {
		Head h = take_head(m);

		values--;
		if (h.kind == TEXT || h.kind == BYTES)
			m->at += h.n;
		else if (h.kind == ARRAY)
			values += h.n;
		else if (h.kind == MAP)
			values += 2 * h.n;
	}
}
