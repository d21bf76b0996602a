#include <stdio.h>

int main(void)
{
    puts("rondo " RONDO_VERSION);
    return 0;
}
