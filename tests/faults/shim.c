/* Loaded before the C library (LD_PRELOAD): the n-th write, sync, rename, creation or mkdir below a folder fails, or brings a
   signal. Nothing happens until fault_arm is called, by ctypes, in the process that is to suffer. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { WRITE, SYNC, RENAME, CREATE, MKDIR, KINDS };

long fault_counts[KINDS];
static char below[4096];
static int armed, kind_of, error_of, lasting, signal_of, struck;
static long call_of, room_of;

/* kind -1 with room >= 0: a disk with so many bytes left. lasting: after the first, everything that needs room fails. */
void fault_arm(const char *folder, int kind, long call, int error, int lasts, int sig, long room)
{
    strncpy(below, folder, sizeof below - 1);
    kind_of = kind, call_of = call, error_of = error, lasting = lasts, signal_of = sig, room_of = room;
    memset(fault_counts, 0, sizeof fault_counts);
    struck = 0, armed = 1;
}

static int inside(const char *path)
{
    char whole[8192];
    if (path[0] != '/') {
        if (!getcwd(whole, 4096)) return 0;
        strcat(whole, "/"), strncat(whole, path, 4000);
        path = whole;
    }
    return strncmp(path, below, strlen(below)) == 0;
}

static int inside_descriptor(int descriptor)
{
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    return path[0] == '/' && inside(path);
}

/* 1: this call fails, and errno is set. */
static int strikes(int kind)
{
    long number = ++fault_counts[kind];
    int hit = kind == kind_of && number == call_of;
    if (struck && lasting && kind != SYNC && kind != RENAME) hit = 1;
    if (!hit) return 0;
    struck = 1;
    if (signal_of) { kill(getpid(), signal_of); return 0; }
    errno = error_of;
    return 1;
}

static ssize_t room(size_t size)
{
    if (room_of < 0 || kind_of != -1) return size;
    if (room_of == 0 && size) { struck = 1, lasting = 1, error_of = ENOSPC; errno = ENOSPC; return -1; }
    if ((long)size > room_of) size = room_of;
    room_of -= size;
    return size;
}

#define REAL(name, type) static __typeof__(type) *real; if (!real) real = (__typeof__(type) *)dlsym(RTLD_NEXT, name)

ssize_t write(int descriptor, const void *data, size_t size)
{
    REAL("write", ssize_t (int, const void *, size_t));
    if (armed && inside_descriptor(descriptor)) {
        if (strikes(WRITE)) return -1;
        ssize_t some = room(size);
        if (some < 0) return -1;
        size = some;
    }
    return real(descriptor, data, size);
}

ssize_t pwrite64(int descriptor, const void *data, size_t size, off64_t offset)
{
    REAL("pwrite64", ssize_t (int, const void *, size_t, off64_t));
    if (armed && inside_descriptor(descriptor)) {
        if (strikes(WRITE)) return -1;
        ssize_t some = room(size);
        if (some < 0) return -1;
        size = some;
    }
    return real(descriptor, data, size, offset);
}

ssize_t pwrite(int descriptor, const void *data, size_t size, off_t offset) { return pwrite64(descriptor, data, size, offset); }

ssize_t writev(int descriptor, const struct iovec *parts, int count)
{
    REAL("writev", ssize_t (int, const struct iovec *, int));
    if (armed && inside_descriptor(descriptor) && (strikes(WRITE) || room(1) < 0)) return -1;
    return real(descriptor, parts, count);
}

int posix_fallocate64(int descriptor, off64_t offset, off64_t size)
{
    REAL("posix_fallocate64", int (int, off64_t, off64_t));
    if (armed && inside_descriptor(descriptor)) {
        if (strikes(WRITE)) return errno;
        if (kind_of == -1 && room_of >= 0 && size > room_of) return ENOSPC;
    }
    return real(descriptor, offset, size);
}

int posix_fallocate(int descriptor, off_t offset, off_t size) { return posix_fallocate64(descriptor, offset, size); }

int fsync(int descriptor)
{
    REAL("fsync", int (int));
    if (armed && inside_descriptor(descriptor) && strikes(SYNC)) return -1;
    return real(descriptor);
}

int fdatasync(int descriptor)
{
    REAL("fdatasync", int (int));
    if (armed && inside_descriptor(descriptor) && strikes(SYNC)) return -1;
    return real(descriptor);
}

int rename(const char *from, const char *to)
{
    REAL("rename", int (const char *, const char *));
    if (armed && inside(to) && strikes(RENAME)) return -1;
    return real(from, to);
}

int mkdir(const char *path, mode_t mode)
{
    REAL("mkdir", int (const char *, mode_t));
    if (armed && inside(path) && strikes(MKDIR)) return -1;
    return real(path, mode);
}

static int creates(const char *path, int flags) { return armed && (flags & O_CREAT) && inside(path) && strikes(CREATE); }

#define OPEN(name)                                                         \
    int name(const char *path, int flags, ...)                             \
    {                                                                      \
        REAL(#name, int (const char *, int, ...));                      \
        va_list rest;                                                      \
        va_start(rest, flags);                                             \
        mode_t mode = va_arg(rest, mode_t);                                \
        va_end(rest);                                                      \
        return creates(path, flags) ? -1 : real(path, flags, mode);        \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                       \
    int name(int folder, const char *path, int flags, ...)                 \
    {                                                                      \
        REAL(#name, int (int, const char *, int, ...));                 \
        va_list rest;                                                      \
        va_start(rest, flags);                                             \
        mode_t mode = va_arg(rest, mode_t);                                \
        va_end(rest);                                                      \
        return creates(path, flags) ? -1 : real(folder, path, flags, mode); \
    }
OPENAT(openat)
OPENAT(openat64)
