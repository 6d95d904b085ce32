/* SPDX-License-Identifier: BSD-2-Clause */
#include "binary.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#if __SIZEOF_POINTER__ == 8
#define NATIVE_CLASS ELFCLASS64
#else
#define NATIVE_CLASS ELFCLASS32
#endif

#if defined(__x86_64__)
#define NATIVE_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define NATIVE_MACHINE EM_AARCH64
#else
#error "unknown processor"
#endif

struct image {
    const unsigned char *bytes;
    size_t size;
};

static bool image_open(struct image *image, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    void *bytes = MAP_FAILED;

    if (fd < 0)
        return false;
    if (!fstat(fd, &status) && S_ISREG(status.st_mode) && status.st_size > 0)
        bytes = mmap(NULL, status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (bytes == MAP_FAILED)
        return false;
    image->bytes = bytes;
    image->size = status.st_size;
    return true;
}

static void image_close(struct image *image)
{
    munmap((void *)image->bytes, image->size);
}

/* NULL unless the whole range is inside the file and aligned for the type. */
static const void *image_at(const struct image *image, size_t offset, size_t size, size_t align)
{
    if (offset > image->size || size > image->size - offset || offset % align)
        return NULL;
    return image->bytes + offset;
}

#define IMAGE_AT(image, offset, type) \
    ((const type *)image_at(image, offset, sizeof(type), _Alignof(type)))

static const char *image_string(const struct image *image, size_t offset)
{
    const char *text = image_at(image, offset, 1, 1);

    return text && memchr(text, '\0', image->size - offset) ? text : NULL;
}

static bool is_elf(const struct image *image)
{
    return image->size >= EI_NIDENT && !memcmp(image->bytes, ELFMAG, SELFMAG);
}

/* The ELF header, if word size and processor are those of this program. */
static const ElfW(Ehdr) * native_header(const struct image *image)
{
    const ElfW(Ehdr) *header = IMAGE_AT(image, 0, ElfW(Ehdr));

    if (!header || !is_elf(image) || header->e_ident[EI_CLASS] != NATIVE_CLASS ||
        header->e_machine != NATIVE_MACHINE)
        return NULL;
    return header;
}

enum binary_type binary_type_of(const char *path)
{
    enum binary_type nature = BINARY_NONE;
    const ElfW(Ehdr) * header;
    struct image image;

    if (!image_open(&image, path))
        return BINARY_NONE;
    header = native_header(&image);
    if (!header) {
        nature = is_elf(&image) ? BINARY_FOREIGN : BINARY_NONE;
        goto close_image;
    }
    nature = BINARY_STATIC;
    for (int i = 0; i < header->e_phnum; i++) {
        const ElfW(Phdr) *part =
            IMAGE_AT(&image, header->e_phoff + i * sizeof(ElfW(Phdr)), ElfW(Phdr));

        if (part && part->p_type == PT_INTERP)
            nature = BINARY_DYNAMIC;
    }
close_image:
    image_close(&image);
    return nature;
}

static const ElfW(Shdr) *
    section(const struct image *image, const ElfW(Ehdr) * header, unsigned int index)
{
    if (index >= header->e_shnum)
        return NULL;
    return IMAGE_AT(image, header->e_shoff + index * sizeof(ElfW(Shdr)), ElfW(Shdr));
}

/* Calls 'each' with the name of every version the file defines, its own name excepted, until one
 * call returns false. */
static bool each_version(const struct image *image, bool (*each)(const char *name, void *context),
                         void *context)
{
    const ElfW(Ehdr) *header = native_header(image);
    const ElfW(Shdr) *versions = NULL, *strings;
    size_t offset;

    for (unsigned int i = 0; header && i < header->e_shnum; i++) {
        const ElfW(Shdr) *candidate = section(image, header, i);

        if (candidate && candidate->sh_type == SHT_GNU_verdef)
            versions = candidate;
    }
    strings = versions ? section(image, header, versions->sh_link) : NULL;
    if (!strings)
        return true;
    offset = versions->sh_offset;
    for (unsigned int i = 0; i < versions->sh_info; i++) {
        const ElfW(Verdef) *definition = IMAGE_AT(image, offset, ElfW(Verdef));
        const ElfW(Verdaux) *naming =
            definition ? IMAGE_AT(image, offset + definition->vd_aux, ElfW(Verdaux)) : NULL;
        const char *name =
            naming ? image_string(image, strings->sh_offset + naming->vda_name) : NULL;

        if (!name)
            return true;
        if (!(definition->vd_flags & VER_FLG_BASE) && !each(name, context))
            return false;
        if (!definition->vd_next)
            return true;
        offset += definition->vd_next;
    }
    return true;
}

static bool differs(const char *name, void *context)
{
    return strcmp(name, context) != 0;
}

struct search {
    const struct image *candidate;
    const char *missing;
};

static bool is_covered(const char *name, void *context)
{
    struct search *search = context;

    if (!each_version(search->candidate, differs, (void *)name))
        return true;
    search->missing = name;
    return false;
}

bool binary_versions_cover(const char *candidate, const char *reference, char *missing,
                           unsigned long size)
{
    struct image ours, theirs;
    struct search search = { .candidate = &ours };
    bool covered;

    if (!image_open(&ours, candidate)) {
        snprintf(missing, size, "the file itself");
        return false;
    }
    if (!image_open(&theirs, reference)) {
        image_close(&ours);
        return true;
    }
    covered = each_version(&theirs, is_covered, &search);
    if (!covered)
        snprintf(missing, size, "%s", search.missing);
    image_close(&theirs);
    image_close(&ours);
    return covered;
}
