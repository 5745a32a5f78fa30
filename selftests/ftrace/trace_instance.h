/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A tracing instance of its own for a C test on kselftest_harness.h, and a
 * guard that puts back what the test has changed, however the test ends.
 *
 * The guard is a process in a session of its own. It outlives a test that the
 * harness kills because its time is over, notices that by the end of a pipe,
 * undoes, and lets the next test begin only then. A test that ends by itself
 * has its changes undone by the guard, too, so there is one way only.
 */
#ifndef __TRACE_INSTANCE_H
#define __TRACE_INSTANCE_H

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TRACE_PATH	256
#define TRACE_DEFAULT	"/sys/kernel/tracing"
#define UNDO_TRIES	3000	/* to remove an instance, one every 10 ms */
#define GUARD_SECONDS	120	/* bound for a guard to be done, also if slow */

struct trace_instance {
	char root[TRACE_PATH / 4];	/* where tracefs is mounted */
	char dir[TRACE_PATH / 2];	/* our instance below it */
	bool mounted;			/* by us */
};

struct trace_guard {
	pid_t pid;
	int pipe;	/* the guard acts when this end is closed */
};

static int *trace_guard_busy;	/* shared by all tests of a program */
static pid_t trace_guard_owner;

/* Returns 0, or -1 with errno set. */
static inline int trace_write(const char *value, const char *fmt, ...)
{
	size_t len = strlen(value);
	char path[TRACE_PATH];
	int fd, saved;
	ssize_t done;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	done = write(fd, value, len);
	saved = errno;
	close(fd);
	errno = saved;
	return done == (ssize_t)len ? 0 : -1;
}

/* Reads the first line, without its end. Returns 0, or -1 with errno set. */
static inline int trace_read(char *value, size_t size, const char *fmt, ...)
{
	char path[TRACE_PATH];
	ssize_t len;
	va_list ap;
	int fd;

	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	value[0] = '\0';
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	len = read(fd, value, size - 1);
	close(fd);
	if (len < 0)
		return -1;
	value[len] = '\0';
	value[strcspn(value, "\n")] = '\0';
	return 0;
}

/* Finds tracefs, or mounts it. Returns false if the kernel has none. */
static inline bool trace_find(struct trace_instance *ti)
{
	char line[1024], dir[TRACE_PATH / 4], type[32];
	FILE *f = fopen("/proc/self/mounts", "r");
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%*s %63s %31s", dir, type) == 2 &&
		    !strcmp(type, "tracefs")) {
			memcpy(ti->root, dir, sizeof(dir));
			found = true;
		}
	}
	if (f)
		fclose(f);
	if (found)
		return true;
	if (mount("tracefs", TRACE_DEFAULT, "tracefs", 0, NULL))
		return false;
	memcpy(ti->root, TRACE_DEFAULT, sizeof(TRACE_DEFAULT));
	ti->mounted = true;
	return true;
}

/* The name is known before the instance exists, so that a guard can be set. */
static inline void trace_instance_name(struct trace_instance *ti, const char *name)
{
	snprintf(ti->dir, sizeof(ti->dir), "%s/instances/%.24s-%d", ti->root,
		 name, getpid());
}

/* Empties the instance's buffers. */
static inline void trace_clear(const struct trace_instance *ti)
{
	char path[TRACE_PATH];
	int fd;

	snprintf(path, sizeof(path), "%s/trace", ti->dir);
	fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
}

/* For a guard: readers that were killed may still be on their way out. */
static inline void trace_instance_undo(const struct trace_instance *ti)
{
	const struct timespec tick = { .tv_nsec = 10000000 };
	int tries;

	trace_write("0", "%s/events/enable", ti->dir);
	trace_write("nop", "%s/current_tracer", ti->dir);
	for (tries = 0; tries < UNDO_TRIES; tries++) {
		if (!rmdir(ti->dir) || errno != EBUSY)
			break;
		nanosleep(&tick, NULL);
	}
	if (ti->mounted)
		umount(ti->root);
}

/* Waits for the guard of an earlier test. Returns false if it is stuck. */
static inline bool trace_guard_wait(void)
{
	const struct timespec second = { .tv_sec = 1 };
	int seconds = 0;

	while (__atomic_load_n(trace_guard_busy, __ATOMIC_ACQUIRE)) {
		if (seconds == GUARD_SECONDS)
			return false;
		if (syscall(SYS_futex, trace_guard_busy, FUTEX_WAIT, 1,
			    &second, NULL, 0) && errno == ETIMEDOUT)
			seconds++;
	}
	return true;
}

static inline void trace_guard_run(int fd, void (*undo)(void *data), void *data)
{
	int null = open("/dev/null", O_RDWR);
	char byte;

	setsid();
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGALRM, SIG_IGN);
	prctl(PR_SET_PDEATHSIG, 0);
	/* Whoever reads the test's output must not wait for us. */
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	while (read(fd, &byte, 1) < 0 && errno == EINTR)
		;
	undo(data);
	__atomic_store_n(trace_guard_busy, 0, __ATOMIC_RELEASE);
	syscall(SYS_futex, trace_guard_busy, FUTEX_WAKE, 1024, NULL, NULL, 0);
	_exit(0);
}

/*
 * Sets a guard, to be called before anything is changed. @undo sees @data as
 * it is now. From here on the test does not outlive the harness either.
 * Returns 0, or -1 with errno set.
 */
static inline int trace_guard_start(struct trace_guard *guard,
				    void (*undo)(void *data), void *data)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC))
		return -1;
	__atomic_store_n(trace_guard_busy, 1, __ATOMIC_RELEASE);
	guard->pid = fork();
	if (guard->pid < 0) {
		__atomic_store_n(trace_guard_busy, 0, __ATOMIC_RELEASE);
		return -1;
	}
	if (!guard->pid) {
		close(fds[1]);
		trace_guard_run(fds[0], undo, data);
	}
	close(fds[0]);
	guard->pipe = fds[1];
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	return 0;
}

/* Has the guard undo everything now, and waits until it is done. */
static inline void trace_guard_finish(struct trace_guard *guard)
{
	if (guard->pid <= 0)
		return;
	close(guard->pipe);
	while (waitpid(guard->pid, NULL, 0) < 0 && errno == EINTR)
		;
	guard->pid = 0;
}

__attribute__((constructor))
static void trace_guard_init(void)
{
	trace_guard_busy = mmap(NULL, sizeof(*trace_guard_busy),
				PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (trace_guard_busy == MAP_FAILED)
		abort();
	trace_guard_owner = getpid();
}

/* A program must not end, and another start, with a guard still at work. */
__attribute__((destructor))
static void trace_guard_exit(void)
{
	if (getpid() == trace_guard_owner)
		trace_guard_wait();
}

#endif /* __TRACE_INSTANCE_H */
