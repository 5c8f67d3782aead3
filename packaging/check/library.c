/* The library's ten lines: append, commit, read back. */
#include <stdio.h>
#include <string.h>
#include <vellum.h>

int main(void)
{
    vellum_log *log;
    vellum_reader *reader;
    vellum_record record;
    uint64_t lsn;
    if (vellum_open("check.wal", NULL, &log) || vellum_append(log, "a record", 8, &lsn)
        || vellum_commit(log, lsn) || vellum_reader_open(log, lsn, &reader)
        || vellum_reader_next(reader, &record) || record.len != 8
        || memcmp(record.data, "a record", 8) != 0)
        return fprintf(stderr, "%s\n", vellum_last_error_message()), 1;
    vellum_reader_close(reader);
    vellum_close(log);
    return 0;
}
