/* A clock that is wrong by the seconds in a file: loaded with LD_PRELOAD, and chosen by `toolcrib_clock(file)`. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *wrong_by;

int toolcrib_clock(const char *file)
{
    int opened = open(file, O_RDONLY);
    if (opened < 0)
        return -1;
    void *mapped = mmap(NULL, sizeof *wrong_by, PROT_READ, MAP_SHARED, opened, 0);
    close(opened);
    if (mapped == MAP_FAILED)
        return -1;
    wrong_by = mapped;
    return 0;
}

static int64_t offset(void)
{
    return wrong_by == NULL ? 0 : *wrong_by;
}

int clock_gettime(clockid_t which, struct timespec *at)
{
    static int (*real)(clockid_t, struct timespec *);
    if (real == NULL)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(which, at);
    if (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE)
        at->tv_sec += offset();
    return result;
}

int gettimeofday(struct timeval *at, void *zone)
{
    static int (*real)(struct timeval *, void *);
    if (real == NULL)
        real = (int (*)(struct timeval *, void *))dlsym(RTLD_NEXT, "gettimeofday");
    int result = real(at, zone);
    at->tv_sec += offset();
    return result;
}

time_t time(time_t *at)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at != NULL)
        *at = now.tv_sec;
    return now.tv_sec;
}
