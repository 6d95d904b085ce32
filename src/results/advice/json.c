/* SPDX-License-Identifier: BSD-2-Clause */
/* Advice for programs. */
#include "json.h"

static json_t *evidence_json(const struct advice *advice)
{
    json_t *array = json_array();

    for (unsigned int i = 0; i < advice->evidence_count; i++) {
        const struct evidence *row = &advice->evidence[i];

        json_array_append_new(array, json_pack("{ss ss ss ss ss ss sf sf}", "file", row->file->path,
                                               "experiment", row->experiment->name, "series",
                                               row->series->name, "quantity", row->series->quantity,
                                               "unit", row->series->unit, "axis", row->series->axis,
                                               "x", row->x, "value", row->value));
    }
    return array;
}

json_t *advice_json(const struct advice *advice)
{
    json_t *found = json_object(), *parameters = json_object();

    for (unsigned int i = 0; i < advice->found_count; i++)
        json_object_set_new(
            found, advice->found[i].name,
            json_pack("{sf ss}", "value", advice->found[i].value, "unit", advice->found[i].unit));
    for (unsigned int i = 0; i < advice->parameter_count; i++) {
        char name[128];

        if (advice->parameters[i].is_default)
            continue;
        snprintf(name, sizeof(name), ADVICE_PREFIX "%s", advice->parameters[i].name);
        json_object_set_new(parameters, name,
                            json_integer((json_int_t)advice->parameters[i].value));
    }
    return json_pack("{ss ss ss? ss? so so so}", "name", advice->adviser->name, "question",
                     advice->adviser->question, "advice", advice->text, "reason", advice->reason,
                     "found", found, "evidence", evidence_json(advice), "parameters", parameters);
}
