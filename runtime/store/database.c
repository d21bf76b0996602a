#include "runtime/store/database.h"

#include <stddef.h>

bool database_distrust(sqlite3 *db)
{
    return sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL) == SQLITE_OK &&
           sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL) == SQLITE_OK;
}
