/* Linked with every object of the runtime and with nothing of the compiler:
 * that it links at all is most of the test. */
#include <stdio.h>

#include "../runtime/ingot.h"

int
main(void)
{
	ingot_plan *plan = NULL;
	ingot_error err = {0};
	int ok = ingot_plan_open("/nonexistent.plan", &plan, &err) == INGOT_IO;

	ok = ok && plan == NULL && err.text[0] != '\0';
	printf("%d passed, %d failed\n", ok, !ok);
	return !ok;
}
