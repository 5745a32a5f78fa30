// SPDX-License-Identifier: GPL-2.0
/*
 * Makes races for hwlat's sequence counter happen.
 *
 *   hwlat_watch COMMAND...   while COMMAND runs, ends with its exit status
 *   hwlat_watch              until the end of standard input
 *
 * A hardware watchpoint on hwlat_data.count stops each CPU for a while right
 * after it has read the counter. If reading and writing back are two steps,
 * the others get the time to come in between, which takes minutes of luck
 * otherwise. If it is one atomic step nothing can come of it. No hook in the
 * kernel is needed, and the kernel takes the watchpoints away at exit.
 *
 * An emulator that runs one CPU after the other goes to the next one when an
 * interrupt comes for any of them, and hardly ever else. So each CPU gets some
 * from a timer, and the more CPUs there are, the fewer each: all of them come
 * out of the one thread that runs the CPUs, which on a slow machine would have
 * time for nothing else. Where CPUs run at the same time, it changes nothing:
 * a CPU takes its number with interrupts disabled.
 *
 * The counter has no symbol of its own. It is found in /proc/kcore, within
 * hwlat_data, by its neighbours sample_window and sample_width.
 *
 * Prints "# watching N" when all is set. Exit status 4 if the kernel or the
 * machine has not what it takes; then COMMAND has not run.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/elf.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_SKIP	4	/* KSFT_SKIP */
#define INTERRUPT_NS	200000	/* from one to the next, of all CPUs together */
#define WORDS		64	/* hwlat_data is never larger, even with lockdep */

typedef unsigned long long u64;

#if __BITS_PER_LONG == 64
#define elf_hdr		elf64_hdr
#define elf_phdr	elf64_phdr
#else
#define elf_hdr		elf32_hdr
#define elf_phdr	elf32_phdr
#endif

static void skip(const char *what)
{
	fprintf(stderr, "# hwlat_watch: %s: %s\n", what, strerror(errno));
	exit(EXIT_SKIP);
}

static unsigned long find_symbol(const char *wanted)
{
	FILE *f = fopen("/proc/kallsyms", "r");
	unsigned long addr, found = 0;
	char line[512], name[256];

	while (f && !found && fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx %*c %255s", &addr, name) == 2 &&
		    !strcmp(name, wanted))
			found = addr;
	if (f)
		fclose(f);
	errno = ENOENT;
	return found;
}

static u64 read_setting(const char *name)
{
	char line[1024], dir[256], type[32], path[512];
	FILE *f = fopen("/proc/self/mounts", "r");
	u64 value = 0;

	path[0] = '\0';
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%*s %255s %31s", dir, type) == 2 &&
		    !strcmp(type, "tracefs"))
			snprintf(path, sizeof(path), "%s/hwlat_detector/%s",
				 dir, name);
	if (f)
		fclose(f);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%llu", &value) != 1)
		skip(name);
	fclose(f);
	return value;
}

/* Reads kernel memory, returns how many bytes there are at @addr. */
static ssize_t read_kernel(unsigned long addr, void *buf, size_t size)
{
	int fd = open("/proc/kcore", O_RDONLY | O_CLOEXEC);
	struct elf_phdr phdr;
	struct elf_hdr ehdr;
	ssize_t len = 0;
	int i;

	if (fd < 0 || pread(fd, &ehdr, sizeof(ehdr), 0) != sizeof(ehdr))
		skip("/proc/kcore");
	for (i = 0; i < ehdr.e_phnum && len <= 0; i++) {
		if (pread(fd, &phdr, sizeof(phdr),
			  ehdr.e_phoff + i * sizeof(phdr)) != sizeof(phdr))
			break;
		if (phdr.p_type == PT_LOAD && addr >= phdr.p_vaddr &&
		    addr < phdr.p_vaddr + phdr.p_memsz)
			len = pread(fd, buf, size,
				    phdr.p_offset + (addr - phdr.p_vaddr));
	}
	close(fd);
	return len;
}

static unsigned long find_counter(void)
{
	unsigned long addr = find_symbol("hwlat_data");
	u64 window = read_setting("window");
	u64 width = read_setting("width");
	u64 words[WORDS];
	ssize_t i, nr;

	if (!addr)
		skip("hwlat_data in /proc/kallsyms");
	nr = read_kernel(addr, words, sizeof(words)) / (ssize_t)sizeof(words[0]);
	for (i = 1; i + 1 < nr; i++)
		if (words[i] == window && words[i + 1] == width)
			return addr + (i - 1) * sizeof(words[0]);
	errno = ENOENT;
	skip("sample_window and sample_width in hwlat_data");
	return 0;
}

static bool open_event(int cpu, struct perf_event_attr *attr)
{
	attr->size = sizeof(*attr);
	return syscall(SYS_perf_event_open, attr, -1, cpu, -1,
		       PERF_FLAG_FD_CLOEXEC) >= 0;
}

static bool watch_cpu(int cpu, int cpus, unsigned long addr)
{
	struct perf_event_attr watchpoint = {
		.type = PERF_TYPE_BREAKPOINT,
		.bp_type = HW_BREAKPOINT_RW,
		.bp_addr = addr,
		.bp_len = sizeof(long),
		.pinned = 1,
	};
	struct perf_event_attr timer = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = (u64)cpus * INTERRUPT_NS,
	};

	return open_event(cpu, &watchpoint) && open_event(cpu, &timer);
}

/* CPUs that are offline have none, so just try them all. */
static int watch_all(unsigned long addr)
{
	int cpus = sysconf(_SC_NPROCESSORS_CONF);
	int cpu, watching = 0;

	for (cpu = 0; cpu < cpus; cpu++)
		if (watch_cpu(cpu, cpus, addr))
			watching++;
	return watching;
}

static int run(char **argv)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		execvp(argv[0], argv);
		fprintf(stderr, "hwlat_watch: %s: %s\n", argv[0],
			strerror(errno));
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
	int watching = watch_all(find_counter());
	char byte;

	if (!watching)
		skip("perf_event_open");
	printf("# watching %d\n", watching);
	fflush(stdout);
	if (argc > 1)
		return run(argv + 1);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return 0;
}
