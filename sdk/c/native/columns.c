// Columns: the announced schema of an arena, checked against the size of its blocks.
#include "internal.h"
#include "json.h"

enum { COLUMNS_MAX = 4096 };

static const struct {
    const char *name;
    size_t bytes;
} dtypes[] = {
    {"u8", 1}, {"i8", 1}, {"i16", 2}, {"u16", 2}, {"i32", 4}, {"u32", 4}, {"i64", 8}, {"u64", 8},
    {"f16", 2}, {"bf16", 2}, {"f32", 4}, {"f64", 8}, {"bool", 1}, {"bytes", 1},
};

static size_t dtype_bytes(const char *name) {
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        if (strcmp(dtypes[i].name, name) == 0) return dtypes[i].bytes;
    }
    return 0;
}

// reaches reports whether count elements a stride apart, the first at *end, end within most, and moves *end to the
// last.
static bool reaches(size_t *end, size_t count, size_t stride, size_t most) {
    if (count > 1 && stride > (most - *end) / (count - 1)) return false;
    *end += (count - 1) * stride;
    return true;
}

// lies_within reports whether every element of a column lies in a block of block_bytes.
static bool lies_within(const rlh_column_view *c, size_t block_bytes) {
    if (c->rows == 0 || c->envs == 0 || c->elems == 0) return true;
    size_t last = c->offset;
    return last <= block_bytes && reaches(&last, c->rows, c->stride_t, block_bytes) &&
           reaches(&last, c->envs, c->stride_env, block_bytes) && reaches(&last, c->elems, c->stride_elem, block_bytes) &&
           c->elem_bytes <= block_bytes - last;
}

// is_aligned reports whether elements can be read as values of their type.
static bool is_aligned(const rlh_column_view *c) {
    return ((c->offset | c->stride_t | c->stride_env | c->stride_elem) & (c->elem_bytes - 1)) == 0;
}

static bool read_shape(const struct json *doc, json_place shape, rlh_column_view *c) {
    for (json_place at = json_first(doc, shape); at != JSON_NONE; at = json_next(doc, shape, at)) {
        if (c->dims == RLH_MAX_DIMS || !json_size(doc, at, &c->shape[c->dims], SIZE_MAX / 2)) return false;
        c->dims++;
    }
    return true;
}

static bool read_column(const struct json *doc, json_place at, size_t block_bytes, rlh_column_view *c) {
    const struct {
        const char *key;
        size_t *value;
    } numbers[] = {
        {"rows", &c->rows},         {"envs", &c->envs},         {"elems", &c->elems},          {"offset", &c->offset},
        {"stride_t", &c->stride_t}, {"stride_env", &c->stride_env}, {"stride_elem", &c->stride_elem},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (!json_size(doc, json_get(doc, at, numbers[i].key), numbers[i].value, SIZE_MAX / 2)) return false;
    }
    c->name = json_text(doc, json_get(doc, at, "name"));
    c->dtype = json_text(doc, json_get(doc, at, "dtype"));
    if (c->name == NULL || c->dtype == NULL) return false;
    c->elem_bytes = dtype_bytes(c->dtype);
    return c->elem_bytes > 0 && read_shape(doc, json_get(doc, at, "shape"), c) && is_aligned(c) &&
           lies_within(c, block_bytes);
}

static void free_column(rlh_column_view *c) {
    free((char *)c->name);
    free((char *)c->dtype);
}

void columns_read(rlh_arena *a) {
    struct json doc;
    if (!json_parse(&doc, a->info.schema, strlen(a->info.schema))) return;
    json_place list = json_get(&doc, 0, "columns");
    size_t count = 0;
    for (json_place at = json_first(&doc, list); at != JSON_NONE; at = json_next(&doc, list, at)) count++;
    if (count > COLUMNS_MAX) count = COLUMNS_MAX;
    a->columns = count > 0 ? calloc(count, sizeof *a->columns) : NULL;
    for (json_place at = json_first(&doc, list); at != JSON_NONE && a->columns != NULL && a->column_count < count;
         at = json_next(&doc, list, at)) {
        rlh_column_view c = {0};
        if (read_column(&doc, at, a->info.block_bytes, &c)) {
            a->columns[a->column_count++] = c;
        } else {
            free_column(&c); // unreadable: rlh_column does not find it
        }
    }
    json_free(&doc);
}

void columns_free(rlh_arena *a) {
    for (size_t i = 0; i < a->column_count; i++) free_column(&a->columns[i]);
    free(a->columns);
}

const rlh_column_view *rlh_columns(const rlh_arena *a, size_t *count) {
    *count = a->column_count;
    return a->columns;
}

const rlh_column_view *rlh_column(const rlh_arena *a, const char *name) {
    for (size_t i = 0; i < a->column_count; i++) {
        if (strcmp(a->columns[i].name, name) == 0) return &a->columns[i];
    }
    return NULL;
}
