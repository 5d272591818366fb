#include "resources.h"

#include <elf.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "msgpack.h"

enum { MACHINE_AMDGPU = 224, NOTE_METADATA = 32 };

typedef struct Reader {
	Arena *arena;
	const unsigned char *code;
	size_t length;
	Elf64_Ehdr head;
} Reader;

/* ---- the ELF file ---- */

/* size bytes at offset, or NULL when the file ends before. */
static const unsigned char *
bytes_at(const Reader *r, uint64_t offset, uint64_t size)
{
	if (offset > r->length || size > r->length - offset)
		return NULL;
	return r->code + offset;
}

static bool
copy(const Reader *r, uint64_t offset, void *to, size_t size)
{
	const unsigned char *from = bytes_at(r, offset, size);

	if (from)
		memcpy(to, from, size);
	return from != NULL;
}

static bool
read_head(Reader *r)
{
	return copy(r, 0, &r->head, sizeof r->head) &&
	       memcmp(r->head.e_ident, ELFMAG, SELFMAG) == 0 &&
	       r->head.e_ident[EI_CLASS] == ELFCLASS64 &&
	       r->head.e_ident[EI_DATA] == ELFDATA2LSB &&
	       r->head.e_machine == MACHINE_AMDGPU &&
	       r->head.e_phentsize == sizeof(Elf64_Phdr) &&
	       r->head.e_shentsize == sizeof(Elf64_Shdr);
}

/* The index-th segment; false: not in the file. */
static bool
segment(const Reader *r, uint32_t index, Elf64_Phdr *p)
{
	return r->head.e_phoff <= r->length &&
	       copy(r, r->head.e_phoff + index * sizeof *p, p, sizeof *p);
}

static bool
section(const Reader *r, uint32_t index, Elf64_Shdr *s)
{
	return r->head.e_shoff <= r->length &&
	       copy(r, r->head.e_shoff + index * sizeof *s, s, sizeof *s);
}

/* The metadata among the notes of size bytes at offset. */
static bool
note_in(const Reader *r, uint64_t offset, uint64_t size, Msg *m)
{
	static const char owner[8] = "AMDGPU";
	const unsigned char *at = bytes_at(r, offset, size);
	Elf64_Nhdr n;

	while (at && size >= sizeof n) {
		uint64_t name, all;

		memcpy(&n, at, sizeof n);
		name = ((uint64_t)n.n_namesz + 3) / 4 * 4;
		all = sizeof n + name + ((uint64_t)n.n_descsz + 3) / 4 * 4;
		if (all > size)
			return false;
		if (n.n_type == NOTE_METADATA && n.n_namesz == 7 &&
		    memcmp(at + sizeof n, owner, 7) == 0) {
			m->at = at + sizeof n + name;
			m->end = m->at + n.n_descsz;
			return true;
		}
		at += all;
		size -= all;
	}
	return false;
}

static bool
find_metadata(const Reader *r, Msg *m)
{
	Elf64_Phdr p;

	for (uint32_t i = 0; i < r->head.e_phnum && segment(r, i, &p); i++)
		if (p.p_type == PT_NOTE &&
		    note_in(r, p.p_offset, p.p_filesz, m))
			return true;
	return false;
}

/* Where the address lies in the file; 0: nowhere. */
static uint64_t
offset_of(const Reader *r, uint64_t address)
{
	Elf64_Phdr p;

	for (uint32_t i = 0; i < r->head.e_phnum && segment(r, i, &p); i++)
		if (p.p_type == PT_LOAD && address >= p.p_vaddr &&
		    address - p.p_vaddr < p.p_filesz)
			return p.p_offset + (address - p.p_vaddr);
	return 0;
}

/* Whether the text and a 0 behind it stand at offset. */
static bool
is_name(const Reader *r, uint64_t offset, const char *text, size_t length)
{
	const unsigned char *at = bytes_at(r, offset, length + 1);

	return at && memcmp(at, text, length) == 0 && at[length] == '\0';
}

/* The address of a symbol; false: there is none. */
static bool
find_symbol(const Reader *r, const char *name, uint64_t *address)
{
	Elf64_Shdr table, names;
	Elf64_Sym s;

	for (uint32_t i = 0; i < r->head.e_shnum && section(r, i, &table);
	     i++) {
		if (table.sh_type != SHT_DYNSYM ||
		    !section(r, table.sh_link, &names) ||
		    !bytes_at(r, table.sh_offset, table.sh_size) ||
		    names.sh_offset > r->length)
			continue;
		for (uint64_t k = 0; k < table.sh_size / sizeof s; k++) {
			copy(r, table.sh_offset + k * sizeof s, &s, sizeof s);
			if (is_name(r, names.sh_offset + s.st_name, name,
				strlen(name))) {
				*address = s.st_value;
				return true;
			}
		}
	}
	return false;
}

/* ---- a kernel ---- */

/* Numbers that the notes give of a kernel, and where they go. */
static const struct {
	const char *key;
	size_t at;
} numbers[] = {
    {".vgpr_count", offsetof(Resources, vgpr)},
    {".sgpr_count", offsetof(Resources, sgpr)},
    {".vgpr_spill_count", offsetof(Resources, vgpr_spill)},
    {".sgpr_spill_count", offsetof(Resources, sgpr_spill)},
    {".group_segment_fixed_size", offsetof(Resources, lds)},
    {".private_segment_fixed_size", offsetof(Resources, scratch)},
    {".wavefront_size", offsetof(Resources, wave)},
    {".max_flat_workgroup_size", offsetof(Resources, group)},
};

enum { NUMBERS = sizeof numbers / sizeof *numbers };

static bool
equals(const char *text, size_t length, const char *word)
{
	return length == strlen(word) && memcmp(text, word, length) == 0;
}

static const char *
take_text(Reader *r, Msg *m)
{
	size_t length;
	const char *text = msg_text(m, &length);

	return arena_strndup(r->arena, text, length);
}

/* One argument; false: the runtime adds it. */
static bool
read_arg(Msg *m, ResourceArg *arg)
{
	bool hidden = false;

	for (uint32_t n = msg_map(m); n > 0 && !m->bad; n--) {
		size_t length;
		const char *key = msg_text(m, &length);

		if (equals(key, length, ".offset")) {
			arg->offset = (uint32_t)msg_uint(m);
		} else if (equals(key, length, ".size")) {
			arg->size = (uint32_t)msg_uint(m);
		} else if (equals(key, length, ".value_kind")) {
			key = msg_text(m, &length);
			hidden = length > 7 && memcmp(key, "hidden_", 7) == 0;
		} else {
			msg_skip(m);
		}
	}
	return !hidden;
}

static void
read_args(Reader *r, Msg *m, Resources *k)
{
	uint32_t n = msg_array(m);
	ResourceArg *args = arena_array(r->arena, n, sizeof *args);

	k->args = args;
	k->n_args = 0;
	for (; n > 0 && !m->bad; n--)
		k->n_args += read_arg(m, &args[k->n_args]);
}

/* f32 denormals, in the mode that the kernel's descriptor sets. */
static bool
read_mode(const Reader *r, const char *descriptor, Resources *k)
{
	enum { RSRC1 = 48, DENORM_32 = 16 };
	uint64_t address, offset;
	uint32_t mode;

	if (!find_symbol(r, descriptor, &address))
		return false;
	offset = offset_of(r, address);
	if (!offset || !copy(r, offset + RSRC1, &mode, sizeof mode))
		return false;
	k->denormals = (mode >> DENORM_32 & 3) == 3;
	return true;
}

/* NULL, or what the kernel's notes lack. */
static const char *
read_kernel(Reader *r, Msg *m, Resources *k)
{
	const char *descriptor = NULL;
	bool seen[NUMBERS] = {false};

	for (uint32_t n = msg_map(m); n > 0 && !m->bad; n--) {
		size_t length;
		const char *key = msg_text(m, &length);
		uint32_t i = 0;

		while (i < NUMBERS && !equals(key, length, numbers[i].key))
			i++;
		if (i < NUMBERS) {
			uint32_t value = (uint32_t)msg_uint(m);

			memcpy((char *)k + numbers[i].at, &value, sizeof value);
			seen[i] = true;
		} else if (equals(key, length, ".name")) {
			k->name = take_text(r, m);
		} else if (equals(key, length, ".symbol")) {
			descriptor = take_text(r, m);
		} else if (equals(key, length, ".args")) {
			read_args(r, m, k);
		} else {
			msg_skip(m);
		}
	}
	for (uint32_t i = 0; i < NUMBERS; i++)
		if (!seen[i])
			return numbers[i].key;
	if (!k->name || !descriptor)
		return ".name";
	return read_mode(r, descriptor, k) ? NULL : "descriptor";
}

bool
resources_read(Arena *a, const Target *t, const void *code, size_t length,
    const Resources **out, uint32_t *n, char *why)
{
	Reader r = {.arena = a, .code = code, .length = length};
	Resources *kernels = NULL;
	const char *lack;
	Msg m = {0};

	*n = 0;
	if (!read_head(&r) || !find_metadata(&r, &m)) {
		snprintf(
		    why, TOOL_WHY, "this is no code object for %s", t->name);
		return false;
	}
	for (uint32_t pairs = msg_map(&m); pairs > 0 && !m.bad; pairs--) {
		size_t size;
		const char *key = msg_text(&m, &size);

		if (!equals(key, size, "amdhsa.kernels") || kernels) {
			msg_skip(&m);
			continue;
		}
		*n = msg_array(&m);
		kernels = arena_array(a, *n, sizeof *kernels);
		for (uint32_t i = 0; i < *n && !m.bad; i++) {
			lack = read_kernel(&r, &m, &kernels[i]);
			if (lack) {
				snprintf(why, TOOL_WHY,
				    "kernel %u of the code object for %s has "
				    "no %s",
				    i, t->name, lack);
				return false;
			}
			kernels[i].waves = target_waves(t, kernels[i].vgpr);
		}
	}
	*out = kernels;
	if (m.bad || !kernels)
		snprintf(why, TOOL_WHY,
		    "the notes of the code object for %s are damaged", t->name);
	return !m.bad && kernels;
}
