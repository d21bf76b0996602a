#include "runtime/worker/bound.h"

const struct graph *bound_graph(const struct script_trace *trace, const json_t *index, struct error *err)
{
    if (json_is_integer(index) && json_integer_value(index) >= 0 && (uint64_t)json_integer_value(index) < trace->graph_count)
        return trace->graphs[json_integer_value(index)];
    error_set(err, ERROR_SCRIPT, NULL, "the trace names a graph that it does not hold");
    return NULL;
}

const struct layout_parameter *bound_parameter(const struct layout *l, const json_t *name, struct error *err)
{
    const char *text = json_string_value(name);
    long place = text ? layout_find(l, text) : -1;

    if (place >= 0)
        return &l->parameters[place];
    error_set(err, ERROR_SCRIPT, NULL, "the trace names %s, which is not trained", text ? text : "no parameter");
    return NULL;
}

bool bound_fits(const struct graph *g, uint32_t node, uint64_t bytes, struct error *err)
{
    const struct graph_node *n = &g->nodes[node];
    uint64_t size = n->type == TENSOR_F64 ? 8 : 4;
    char shape[GRAPH_SHOW];

    return n->values == bytes / size || error_set(err, ERROR_SHAPE, NULL, "%s in the graph, where %llu bytes are",
                                                  graph_show(g, node, shape, sizeof shape), (unsigned long long)bytes);
}
