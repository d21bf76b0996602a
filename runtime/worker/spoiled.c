#include "runtime/worker/spoiled.h"

#include "runtime/store/object.h"

bool spoiled_none(const struct session *s, struct error *err)
{
    json_t *list = json_object_get(s->job, "files"), *file;
    size_t i;

    json_array_foreach(list, i, file)
    {
        struct hash id;

        if (!cid_parse(json_string_value(json_array_get(file, 1)), &id, err) ||
            !object_is_file(MODEL_MEDIA, id, json_string_value(json_array_get(file, 0)), err))
            return error_at(err, "model");
    }
    return true;
}
