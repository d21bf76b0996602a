/* The script host by its C interface: shipped scripts traced in real children, and what the sandbox forbids. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "native/graph/graph.h"
#include "runtime/script/child.h"
#include "runtime/script/host.h"
#include "runtime/script/nursery.h"
#include "runtime/script/sandbox.h"

#define SCRIPTS RONDO_SOURCE "/scripts"

static json_t *json_of(const char *text)
{
    json_t *j = json_loads(text, 0, NULL);
    assert_non_null(j);
    return j;
}

static void read_set(struct script_set *set, const char *name, json_t *options)
{
    struct error err = { .code = ERROR_NONE };
    char text[1024];
    if (!script_set_read(SCRIPTS, name, options, set, &err))
        fail_msg("%s", error_text(&err, text, sizeof text));
}

static void must(bool ok, const struct error *err)
{
    char text[1024];
    if (!ok)
        fail_msg("%s", error_text(err, text, sizeof text));
}

static const char llama[] =
    "{\"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"hidden_size\": 8, "
    "\"intermediate_size\": 6, \"vocab_size\": 7, \"rms_norm_eps\": 1e-6, \"head_dim\": 4, \"rope_theta\": 10000, "
    "\"tie_word_embeddings\": true, \"torch_dtype\": \"float32\"}";

static bool trace_llama(struct script_trace *out, int64_t rank, struct error *err)
{
    struct script_set set;
    read_set(&set, "llama", NULL);
    json_t *config = json_of(llama);
    const struct script_model_request request = { .config = config, .rows = 2, .time = 6, .rank = rank, .scale = 2 };
    bool ok = script_trace_model(&set.bundle, &request, NULL, out, err);
    json_decref(config);
    script_set_free(&set);
    return ok;
}

static const char *param_axes(const struct script_trace *t, const char *name)
{
    size_t i;
    json_t *p;
    json_array_foreach(json_object_get(t->meta, "params"), i, p)
    {
        if (!strcmp(json_string_value(json_object_get(p, "name")), name))
            return json_string_value(json_object_get(p, "axes"));
    }
    return NULL;
}

static void a_model_names_its_parameters_as_the_file_does(void **state)
{
    (void)state;
    struct script_trace t;
    struct error err;
    char shape[GRAPH_SHOW];
    must(trace_llama(&t, 2, &err), &err);
    assert_int_equal(t.graph_count, 1);
    struct graph *g = t.graphs[0];
    assert_string_equal(graph_show(g, graph_output_find(g, "logits"), shape, sizeof shape), "[row=2 time=6 vocab=7]");
    assert_int_not_equal(graph_output_find(g, "hidden"), GRAPH_NONE);
    assert_string_equal(param_axes(&t, "model.embed_tokens.weight"), "vocab=7 embed=8");
    assert_string_equal(param_axes(&t, "model.layers.1.self_attn.q_proj.weight"), "kv=2 group=2 dim=4 embed=8");
    assert_string_equal(param_axes(&t, "model.layers.1.self_attn.q_proj.lora_A.weight"), "rank=2 embed=8");
    assert_string_equal(param_axes(&t, "model.layers.1.self_attn.o_proj.lora_B.weight"), "embed=8 rank=2");
    assert_null(param_axes(&t, "lm_head.weight"));
    assert_null(param_axes(&t, "model.embed_tokens.lora_A.weight"));
    json_t *unread = json_object_get(t.meta, "unread");
    assert_int_equal(json_array_size(unread), 1);
    assert_string_equal(json_string_value(json_array_get(unread, 0)), "torch_dtype");
    uint32_t place;
    assert_int_not_equal(graph_bound_find(g, "ids", &place), GRAPH_NONE);
    assert_int_equal(graph_bound_find(g, "real", &place), GRAPH_NONE); /* never read, so never needed */
    script_trace_free(&t);
}

static void an_objective_declares_fields_by_reading_them(void **state)
{
    (void)state;
    struct script_set set;
    struct script_trace t;
    struct error err;
    read_set(&set, "chat_sft", NULL);
    const struct script_objective_request request = { .batch = 2, .time = 8 };
    must(script_trace_objective(&set.bundle, &request, NULL, &t, &err), &err);
    char *fields = json_dumps(json_object_get(t.meta, "fields"), JSON_COMPACT);
    assert_string_equal(fields, "[\"b.logprobs\",\"b.mask\",\"b.scored\"]");
    free(fields);
    assert_int_not_equal(graph_output_find(t.graphs[0], "loss.0.sum"), GRAPH_NONE);
    assert_int_not_equal(graph_output_find(t.graphs[0], "loss.0.count"), GRAPH_NONE);
    assert_int_not_equal(graph_output_find(t.graphs[0], "metric.tokens.0.sum"), GRAPH_NONE);
    script_trace_free(&t);
    script_set_free(&set);
}

static void equal_graphs_of_an_optimiser_are_kept_once(void **state)
{
    (void)state;
    struct script_set set;
    struct script_trace model, t;
    struct error err;
    must(trace_llama(&model, 2, &err), &err);
    json_t *trained = json_array(), *p;
    size_t i;
    json_array_foreach(json_object_get(model.meta, "params"), i, p)
    {
        if (json_is_true(json_object_get(p, "trained")))
            json_array_append(trained, p);
    }
    assert_int_equal(json_array_size(trained), 2 * 7 * 2);
    read_set(&set, "adamw", NULL);
    must(script_trace_optimiser(&set.bundle, trained, false, NULL, &t, &err), &err);
    assert_int_equal(json_array_size(json_object_get(t.meta, "params")), json_array_size(trained));
    assert_in_range(t.graph_count, 2, 24);
    json_array_foreach(json_object_get(t.meta, "params"), i, p)
    {
        assert_in_range(json_integer_value(json_object_get(p, "step")), 0, t.graph_count - 1);
        assert_int_equal(json_array_size(json_object_get(p, "state")), 4);
    }
    json_decref(trained);
    script_trace_free(&model);
    script_trace_free(&t);
    script_set_free(&set);
}

static void an_aggregator_folds_all_tensors_as_one_axis(void **state)
{
    (void)state;
    struct script_set set;
    struct script_trace t;
    struct error err;
    char shape[GRAPH_SHOW];
    json_t *options = json_of("{\"hostile\": 2}");
    read_set(&set, "trimmed_mean", options);
    const struct script_aggregator_request request = { .peers = 7, .n = 1000 };
    must(script_trace_aggregator(&set.bundle, &request, NULL, &t, &err), &err);
    assert_string_equal(graph_show(t.graphs[0], graph_output_find(t.graphs[0], "u"), shape, sizeof shape), "[n=1000]");
    assert_true(json_is_false(json_object_get(t.meta, "keeps_peer")));
    assert_true(json_is_true(json_object_get(t.meta, "robust")));
    script_trace_free(&t);
    script_set_free(&set);
    json_decref(options);
}

static void a_schedule_gives_plans_and_exact_rates(void **state)
{
    (void)state;
    struct script_set set;
    struct error err;
    json_t *options = json_of("{\"rate.peak\": \"0.008\", \"rate.shape\": \"linear\", \"inner_steps\": 25, \"outer_lr\": 1}");
    json_t *context = json_of("{\"round\": 1, \"rounds\": 16, \"peers\": 4, \"layers\": 4, \"last\": {\"loss\": \"1.25\"}}");
    read_set(&set, "diloco", options);
    json_t *plan = script_plan(&set.bundle, context, NULL, NULL, NULL, &err);
    must(plan != NULL, &err);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(plan, "plan"), "steps")), 25);
    json_decref(plan);
    double lr[50];
    must(script_rates(&set.bundle, context, 25, 50, lr, NULL, &err), &err);
    for (int i = 0; i < 50; i++)
        assert_true(lr[i] == 0.008 * (0 + (1 - 0.0) * (1 - (25.0 + i) / 400)));
    script_set_free(&set);
    json_decref(options);
    json_decref(context);
}

static void state_of_a_schedule_goes_round_with_its_types(void **state)
{
    (void)state;
    struct script_set set;
    struct error err;
    json_t *context = json_of("{\"round\": 0, \"rounds\": 9, \"peers\": 4, \"layers\": 4, \"last\": false}"), *kept = NULL;
    json_t *options = json_of("{\"patience\": 1}");
    read_set(&set, "plateau", options);
    for (int round = 0; round < 4; round++) {
        json_t *out = script_plan(&set.bundle, context, kept, NULL, NULL, &err);
        must(out != NULL, &err);
        json_decref(kept);
        kept = json_incref(json_object_get(out, "state"));
        json_decref(out);
        json_object_set_new(context, "last", json_pack("{s:s}", "loss", "2.5"));
    }
    json_t *scale = json_object_get(json_object_get(kept, "scale"), "number");
    assert_string_equal(json_string_value(scale),
                        "0.125"); /* halved when the first loss was no better than none, and twice after 2.5 */
    json_decref(kept);
    json_decref(context);
    json_decref(options);
    script_set_free(&set);
}

static void a_run_file_is_a_plain_table(void **state)
{
    (void)state;
    struct error err;
    static const char source[] = "local n = spec.integer('trainers', 4)\n"
                                 "return { spec = { rounds = 16, rate = 0.008, list = { 1, 2 } }, network = { trainers = n } }";
    const struct script_file file = { "quick", source, sizeof source - 1 };
    json_t *options = json_of("{\"trainers\": 2}");
    json_t *run = script_run_file(&(struct script_bundle){ &file, 1, options }, NULL, &err);
    must(run != NULL, &err);
    char *text = json_dumps(run, JSON_COMPACT | JSON_SORT_KEYS);
    assert_string_equal(text, "{\"network\":{\"trainers\":2},\"spec\":{\"list\":[1,2],\"rate\":\"0.008\",\"rounds\":16}}");
    free(text);
    json_decref(run);
    json_decref(options);
}

static void every_shipped_script_passes_its_check(void **state)
{
    (void)state;
    static const char *const names[] = { "chat_sft",
                                         "pretrain",
                                         "dft",
                                         "grpo",
                                         "gspo",
                                         "ppo",
                                         "dpo",
                                         "ipo",
                                         "kto",
                                         "orpo",
                                         "simpo",
                                         "reward_model",
                                         "distill",
                                         "classify",
                                         "forecast",
                                         "policy",
                                         "preference",
                                         "mean",
                                         "weighted_mean",
                                         "median",
                                         "trimmed_mean",
                                         "krum",
                                         "multi_krum",
                                         "bulyan",
                                         "geometric_median",
                                         "centered_clip",
                                         "norm_clip",
                                         "nearest_mix",
                                         "fltrust",
                                         "sign_majority",
                                         "quality_weighted",
                                         "alternating_lora",
                                         "sparse_mean",
                                         "lora_product",
                                         "robust",
                                         "sgd",
                                         "adamw",
                                         "muon",
                                         "adafactor",
                                         "lion",
                                         "nesterov",
                                         "adaptive",
                                         "sign",
                                         "diloco",
                                         "streaming",
                                         "delayed",
                                         "eager",
                                         "sparse",
                                         "demo",
                                         "ring",
                                         "hierarchical",
                                         "pipeline",
                                         "plateau",
                                         "rate",
                                         "llama",
                                         "qwen3",
                                         "gemma",
                                         "moe",
                                         "vit",
                                         "patch_series",
                                         "decoder",
                                         "exact_match",
                                         "tool_call",
                                         "json_schema",
                                         "length_penalty",
                                         "regex_like",
                                         "close_match",
                                         "combine" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct script_set set;
        struct error err;
        read_set(&set, names[i], NULL);
        json_t *out = script_check(&set.bundle, NULL, NULL, &err);
        must(out != NULL, &err);
        assert_non_null(json_object_get(out, "hash"));
        json_decref(out);
        script_set_free(&set);
    }
}

/* The fault that the check finds, into `text`; "" for none. */
static const char *check_fault(const char *source, char text[128])
{
    struct script_set set;
    read_set(&set, "llama", NULL);
    const struct script_file files[] = { { "peek", source, strlen(source) } };
    struct script_file all[128] = { files[0] };
    for (size_t i = 0; i < set.count && i < 127; i++)
        all[i + 1] = set.files[i];
    struct error err = { .code = ERROR_NONE };
    json_t *out = script_check(&(struct script_bundle){ all, set.count + 1, NULL }, NULL, NULL, &err);
    must(out != NULL, &err);
    const char *message = json_string_value(json_object_get(json_object_get(out, "fault"), "message"));
    snprintf(text, 128, "%s", message ? message : "");
    json_decref(out);
    script_set_free(&set);
    return text;
}

static void a_model_that_looks_ahead_or_across_documents_is_found(void **state)
{
    (void)state;
    char text[128];
    static const char form[] =
        "local decoder = import('decoder')\nreturn model { data = 'text', architectures = {},\n"
        "config = function(h) return { layers = 1, scope = 'l.%%d', axes = decoder.axes(h), eps = 1e-6, tied = true } end,\n"
        "embed = decoder.embed, head = decoder.head,\nblock = function(w, x, b, c)\n"
        "local q = w:linear(x, 'q', 'embed -> kv dim')\nlocal k = w:linear(x, 'k', 'embed -> kv dim')\n"
        "local y = nn.attention(q, k, k, 'time', 'dim', { causal = %s, segment = %s })\n"
        "return x + w:linear(y, 'o', 'kv dim -> embed') end }";
    char source[1024];
    snprintf(source, sizeof source, form, "true", "b.segment");
    assert_string_equal(check_fault(source, text), "");
    snprintf(source, sizeof source, form, "false", "b.segment");
    assert_string_equal(check_fault(source, text), "logits depend on a later token");
    snprintf(source, sizeof source, form, "true", "false");
    assert_string_equal(check_fault(source, text), "logits of a document depend on the one packed before it");
}

/* Runs `attempt` in a process that has gone through the child's doors; the way it ended. */
static int in_process(void (*attempt)(void))
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        attempt();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static int after_sealing(void (*attempt)(void))
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        struct error err;
        if (!sandbox_enter(64 << 20, 5, &err) || !sandbox_seal(&err))
            _exit(99);
        attempt();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void opens_a_file(void)
{
    open("/etc/passwd", O_RDONLY);
}

static void makes_a_socket(void)
{
    socket(AF_INET, SOCK_STREAM, 0);
}

static void starts_a_process(void)
{
    if (fork() == 0)
        _exit(0);
}

static void makes_memory_executable(void)
{
    static char page[8192];
    mprotect((void *)(((uintptr_t)page + 4095) & ~(uintptr_t)4095), 4096, PROT_READ | PROT_EXEC);
}

static void sends_a_signal(void)
{
    kill(getppid(), 0);
}

static void asks_for_more_memory(void)
{
    if (mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
        _exit(42);
}

static void allocates_within_its_heap(void)
{
    for (int i = 0; i < 100; i++) {
        char *p = malloc(1 << 19);
        if (!p)
            _exit(1);
        memset(p, 1, 1 << 19);
        if (i % 2)
            free(p);
    }
    _exit(43);
}

static void writes_to_a_closed_descriptor(void)
{
    _exit(write(3, "x", 1) < 0 ? 44 : 1);
}

static void the_sealed_child_dies_at_any_other_system_call(void **state)
{
    (void)state;
    if (SANDBOX_SANITIZED)
        skip(); /* the filter is left out */
    void (*const attempts[])(void) = { opens_a_file, makes_a_socket, starts_a_process, makes_memory_executable, sends_a_signal };
    for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++) {
        int status = after_sealing(attempts[i]);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
    }
    assert_int_equal(WEXITSTATUS(after_sealing(asks_for_more_memory)), 42);
    assert_int_equal(WEXITSTATUS(after_sealing(allocates_within_its_heap)), 43);
    assert_int_equal(WEXITSTATUS(after_sealing(writes_to_a_closed_descriptor)), 44);
}

static void starts_without_memory(void)
{
    const struct rlimit little = { 1 << 20, 1 << 20 };
    struct child c = { .memory = 1ull << 40 };
    void *volatile last;
    setrlimit(RLIMIT_AS, &little);
    do
        last = malloc(64);
    while (last);
    _exit(!child_start(&c) && c.error.code == ERROR_MEMORY ? 45 : 46);
}

static void starts_within_too_little(void)
{
    struct child c = { .memory = 4096 };
    _exit(!child_start(&c) && c.error.code == ERROR_LIMIT ? 47 : 48);
}

/* The first is this machine's, the second everybody's. */
static void memory_that_the_machine_lacks_is_not_the_specs_limit(void **state)
{
    (void)state;
    if (SANDBOX_SANITIZED)
        skip(); /* it needs terabytes of addresses */
    assert_int_equal(WEXITSTATUS(in_process(starts_without_memory)), 45);
    assert_int_equal(WEXITSTATUS(in_process(starts_within_too_little)), 47);
}

static void a_program_that_is_no_child_is_an_error(void **state)
{
    (void)state;
    struct script_set set;
    struct error err;
    read_set(&set, "mean", NULL);
    assert_null(script_describe(&set.bundle, &(struct script_limits){ .program = "/bin/true" }, &err));
    assert_null(script_describe(&set.bundle, &(struct script_limits){ .program = "/bin/cat", .seconds = 0.2 }, &err));
    assert_null(script_describe(&set.bundle, &(struct script_limits){ .program = "/nothing" }, &err));
    assert_int_equal(err.code, ERROR_IO);
    script_set_free(&set);
}

/* What a machine does to a process is no refusal of its script: a member would say so in a record. No limit of a spec ends one by a signal. */
static void a_child_that_a_signal_ends_is_no_fault_of_its_script(void **state)
{
    static const char *const signals[] = { "KILL", "SYS", "SEGV", "BUS", "ABRT", "XCPU", "TERM" };
    static const int numbers[] = { SIGKILL, SIGSYS, SIGSEGV, SIGBUS, SIGABRT, SIGXCPU, SIGTERM };
    struct script_set set;
    (void)state;
    read_set(&set, "mean", NULL);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        char path[] = "/tmp/rondo-child-XXXXXX", program[64], told[16];
        struct error err = { .code = ERROR_NONE };
        int fd = mkstemp(path), size = snprintf(program, sizeof program, "#!/bin/sh\nkill -%s $$\n", signals[i]);
        assert_int_equal(write(fd, program, (size_t)size), size);
        assert_int_equal(fchmod(fd, 0700), 0);
        close(fd);
        assert_null(script_describe(&set.bundle, &(struct script_limits){ .program = path }, &err));
        assert_int_equal(err.code, ERROR_FAULT);
        snprintf(told, sizeof told, "signal %d", numbers[i]);
        assert_non_null(strstr(err.message, numbers[i] == SIGSYS ? "system call" : told));
        unlink(path);
    }
    script_set_free(&set);
}

/* A child of a nursery answers what an exec'd one answers; each starts anew, and a nursery that has died is started again. */
static void a_nursery_gives_the_same_answers_from_fresh_processes(void **state)
{
    struct script_nursery *nursery = script_nursery_new();
    const struct script_limits from_nursery = { .nursery = nursery };
    struct error err = { .code = ERROR_NONE };
    struct script_set set;
    pid_t first, second;
    int fd;

    (void)state;
    read_set(&set, "trimmed_mean", NULL);
    json_t *executed = script_describe(&set.bundle, NULL, &err);
    for (int i = 0; i < 3; i++) {
        json_t *split = script_describe(&set.bundle, &from_nursery, &err);
        assert_non_null(split);
        assert_true(json_equal(executed, split));
        json_decref(split);
    }
    assert_null(script_describe(&set.bundle, &(struct script_limits){ .nursery = nursery, .memory = 4096 }, &err));
    assert_int_equal(err.code, ERROR_LIMIT);
    assert_null(script_describe(&set.bundle, &(struct script_limits){ .nursery = nursery, .fuel = 1 }, &err));
    assert_int_equal(err.code, ERROR_FUEL);

    assert_true(script_nursery_child(nursery, "/proc/self/exe", &first, &fd, &err));
    close(fd); /* it reads no request and ends */
    assert_int_equal(waitpid(first, NULL, 0), first);
    assert_true(script_nursery_child(nursery, "/proc/self/exe", &second, &fd, &err));
    assert_int_not_equal(first, second);
    close(fd);
    assert_int_equal(waitpid(second, NULL, 0), second);
    kill(script_nursery_pid(nursery), SIGKILL);
    json_t *again = script_describe(&set.bundle, &from_nursery, &err);
    assert_true(json_equal(executed, again));
    json_decref(again);
    json_decref(executed);
    script_nursery_free(nursery);
    script_set_free(&set);
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "--script-child"))
        return script_child_main();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_names_its_parameters_as_the_file_does),
        cmocka_unit_test(an_objective_declares_fields_by_reading_them),
        cmocka_unit_test(equal_graphs_of_an_optimiser_are_kept_once),
        cmocka_unit_test(an_aggregator_folds_all_tensors_as_one_axis),
        cmocka_unit_test(a_schedule_gives_plans_and_exact_rates),
        cmocka_unit_test(state_of_a_schedule_goes_round_with_its_types),
        cmocka_unit_test(a_run_file_is_a_plain_table),
        cmocka_unit_test(every_shipped_script_passes_its_check),
        cmocka_unit_test(a_model_that_looks_ahead_or_across_documents_is_found),
        cmocka_unit_test(the_sealed_child_dies_at_any_other_system_call),
        cmocka_unit_test(a_program_that_is_no_child_is_an_error),
        cmocka_unit_test(memory_that_the_machine_lacks_is_not_the_specs_limit),
        cmocka_unit_test(a_child_that_a_signal_ends_is_no_fault_of_its_script),
        cmocka_unit_test(a_nursery_gives_the_same_answers_from_fresh_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
