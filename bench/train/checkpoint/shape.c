/* The fields of a model's configuration as one table. tests/checkpoint/resume_test.sh covers this file. */
#include "bench/train/checkpoint/shape.h"

#include <stdio.h>
#include <string.h>

typedef enum { NUMBER, LONG, REAL, FLAG } field_type;

static const struct {
    const char *name;
    size_t at;
    field_type type;
    bool shapes; /* weights of another value do not fit, or mean something else */
} fields[] = {
#define FIELD(name, type, shapes)                                                                                      \
    {                                                                                                                  \
#name, offsetof(sluice_model_config, name), type, shapes                                                       \
    }
    FIELD(layers, NUMBER, true),
    FIELD(channels, NUMBER, true),
    FIELD(heads, NUMBER, true),
    FIELD(hidden, NUMBER, true),
    FIELD(vocabulary, NUMBER, true),
    FIELD(context, NUMBER, true),
    FIELD(types, NUMBER, true),
    FIELD(padding, NUMBER, true),
    FIELD(image_size, NUMBER, true),
    FIELD(patch_size, NUMBER, true),
    FIELD(image_channels, NUMBER, true),
    FIELD(classes, NUMBER, true),
    FIELD(epsilon, REAL, true),
    FIELD(mask_token, FLAG, true),
    FIELD(absolute_positions, FLAG, true),
    FIELD(relative_positions, FLAG, true),
    FIELD(shared_positions, FLAG, true),
    FIELD(no_qkv_bias, FLAG, true),
    FIELD(first_row_pooling, FLAG, true),
    FIELD(layer_scale, REAL, true),
    FIELD(gelu_tanh, FLAG, true),
    FIELD(begin_token, LONG, false),
    FIELD(end_token, LONG, false),
#undef FIELD
};
enum { FIELDS = sizeof fields / sizeof *fields };

static double value_at(const sluice_model_config *model, int i)
{
    const char *from = (const char *)model + fields[i].at;
    switch (fields[i].type) {
    case NUMBER: return *(const uint32_t *)from;
    case LONG: return (double)*(const uint64_t *)from;
    case FLAG: return *(const bool *)from;
    case REAL: break;
    }
    return *(const double *)from;
}

json_t *slc_training_shape_json(const sluice_model_config *model)
{
    json_t *shape = json_pack("{s:s, s:s}", "family", sluice_model_family_name((uint32_t)model->family), "head",
                              model->head == SLUICE_HEAD_CLASSES ? "classes" : "tokens");
    int failed = !shape;
    for (int i = 0; !failed && i < FIELDS; i++) {
        double value = value_at(model, i);
        failed = json_object_set_new(shape, fields[i].name,
                                     fields[i].type == REAL ? json_real(value) : json_integer((json_int_t)value));
    }
    if (!failed) return shape;
    json_decref(shape);
    return NULL;
}

static bool read_family(const json_t *shape, sluice_model_config *out)
{
    const char *family = json_string_value(json_object_get(shape, "family")), *name;
    const char *head = json_string_value(json_object_get(shape, "head"));
    uint32_t found = 0;
    while (family && (name = sluice_model_family_name(found)) && strcmp(name, family)) found++;
    if (!family || !head || !sluice_model_family_name(found)) return false;
    out->family = (sluice_model_family)found;
    out->head = strcmp(head, "classes") ? SLUICE_HEAD_TOKENS : SLUICE_HEAD_CLASSES;
    return true;
}

bool slc_training_shape_read(const json_t *shape, sluice_model_config *out)
{
    bool whole = read_family(shape, out);
    for (int i = 0; whole && i < FIELDS; i++) {
        const json_t *value = json_object_get(shape, fields[i].name);
        char *to = (char *)out + fields[i].at;
        double number = json_number_value(value);
        whole = json_is_number(value) && number >= 0 && (fields[i].type == REAL || number <= UINT32_MAX);
        if (!whole) break;
        switch (fields[i].type) {
        case NUMBER: *(uint32_t *)to = (uint32_t)number; break;
        case LONG: *(uint64_t *)to = (uint64_t)number; break;
        case FLAG: *(bool *)to = number != 0; break;
        case REAL: *(double *)to = number; break;
        }
    }
    return whole && !sluice_model_config_check(out);
}

bool slc_training_shape_equal(const sluice_model_config *a, const sluice_model_config *b, char what[128])
{
    if (a->family != b->family || a->head != b->head) {
        snprintf(what, 128, "%s with another head", sluice_model_family_name((uint32_t)a->family));
        return false;
    }
    for (int i = 0; i < FIELDS; i++) {
        double was = value_at(a, i), is = value_at(b, i);
        if (!fields[i].shapes || was == is) continue;
        snprintf(what, 128, "%s %.10g, this run's has %.10g", fields[i].name, was, is);
        return false;
    }
    return true;
}
