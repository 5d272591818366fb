#include "output.h"

#include <stdio.h>
#include <sys/stat.h>

bool
output_allowed(const char *path, char *why, size_t size)
{
	struct stat st;
	const char *what = "not a regular file";

	if (lstat(path, &st) != 0 || S_ISREG(st.st_mode))
		return true;
	if (S_ISLNK(st.st_mode))
		what = "a link";
	else if (S_ISDIR(st.st_mode))
		what = "a folder";
	snprintf(why, size, "cannot write %.300s: it is %s", path, what);
	return false;
}
