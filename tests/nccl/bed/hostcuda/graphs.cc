/* Capture and graphs. A captured stream is a lane: a list of steps, each of which does work or waits for a place in
 * another lane. A graph that is launched runs its first lane in the stream that it is launched in, and each other lane
 * in a stream of its own, so that work of several devices which waits for each other runs as it would have outside. */
#include "tests/cuda_emulated/streams.h"
#include "tests/nccl/bed/hostcuda/runtime.h"

#include <set>
#include <utility>

/* ---- Objects of the program that graphs keep ---- */

struct CUuserObject_st {
    void *argument;
    cudaHostFn_t destroy;
    std::atomic<unsigned> references;

    void release(unsigned count)
    {
        if (references.fetch_sub(count) != count) return;
        destroy(argument);
        delete this;
    }
};

/* ---- Lanes ---- */

namespace {
struct step {
    std::function<void()> work; /* none: the step waits until `lane` has done `place` steps */
    size_t lane;
    uint32_t place;
};
struct lane {
    std::vector<step> steps;
    int device;
};
struct lanes : std::vector<lane> {
    std::vector<std::pair<cudaUserObject_t, unsigned>> kept; /* objects, and how many references to each */
    ~lanes()
    {
        for (auto &object : kept) object.first->release(object.second);
    }
};
typedef std::vector<uint32_t> places; /* one for each lane; lanes that are missing: 0 */

/* One launch of a graph. */
struct launch {
    std::shared_ptr<const lanes> graph;
    std::unique_ptr<std::atomic<uint32_t>[]> done; /* steps of each lane */
    std::unique_ptr<char[]> order;
    std::atomic<uint32_t> begun{0}, ended{0};

    explicit launch(std::shared_ptr<const lanes> of)
        : graph(std::move(of)), done(new std::atomic<uint32_t>[graph->size()]()), order(new char[graph->size()]())
    {
    }
    void wait_for(size_t l, uint32_t place)
    {
        emulated_wait_for(&done[l], place);
        order_after(&order[l]);
    }
    void run(size_t l)
    {
        for (const step &s : (*graph)[l].steps) {
            if (s.work)
                s.work();
            else
                wait_for(s.lane, s.place);
            order_before(&order[l]);
            done[l]++;
            emulated_wake(&done[l]);
        }
    }
};
} // namespace

struct CUgraph_st {
    std::shared_ptr<lanes> graph;
};

struct CUgraphExec_st {
    std::shared_ptr<const lanes> graph;
    std::vector<cudaStream_t> streams; /* of all lanes but the first */
    emulated_lock lock;
    std::shared_ptr<launch> last; /* launches of one instance run one after the other */
};

/* ---- Capture ---- */

namespace {
struct capture : emulated_recorder, std::enable_shared_from_this<capture> {
    CUstream_st *origin;
    enum cudaStreamCaptureMode mode;
    pthread_t thread;
    unsigned long long id;
    std::atomic<bool> invalid{false};
    bool ended = false;
    std::shared_ptr<lanes> graph = std::make_shared<lanes>();
    std::unique_ptr<CUgraph_st> made{new CUgraph_st{graph}}; /* the program's, when the capture has ended well */
    std::vector<std::shared_ptr<CUstream_st>> streams;       /* of each lane */
    std::vector<places> reached;                             /* what each lane has waited for, directly or not */
    std::vector<places> marks;                               /* the same, of each record of an event */

    void join(CUstream_st *stream)
    {
        stream->lane = (int)graph->size();
        graph->push_back({{}, stream->device});
        streams.push_back(stream->shared_from_this());
        reached.push_back({});
        stream->capture = shared_from_this();
        stream->recorder = this;
    }
    void leave()
    {
        for (auto &s : streams) {
            s->recorder = NULL;
            s->capture.reset();
        }
        ended = true;
    }
    places position(size_t l) const
    {
        places all = reached[l];
        all.resize(graph->size());
        all[l] = (uint32_t)(*graph)[l].steps.size();
        return all;
    }
    bool joined() const
    {
        const places end = position(0);
        for (size_t l = 0; l < graph->size(); l++)
            if (end[l] < (*graph)[l].steps.size()) return false;
        return true;
    }
    cudaError_t break_off(cudaError_t error)
    {
        invalid = true;
        return error;
    }

    cudaError_t append(CUstream_st *stream, bool, std::function<void()> work) override
    {
        if (invalid) return cudaErrorStreamCaptureInvalidated;
        (*graph)[(size_t)stream->lane].steps.push_back({std::move(work), 0, 0});
        return cudaSuccess;
    }
    cudaError_t record(CUstream_st *stream, CUevent_st *event) override
    {
        if (invalid) return cudaErrorStreamCaptureInvalidated;
        event->recorder = shared_from_this();
        event->mark = marks.size();
        marks.push_back(position((size_t)stream->lane));
        return cudaSuccess;
    }
    cudaError_t wait(CUstream_st *stream, CUevent_st *event) override
    {
        if (ended) return cudaErrorCapturedEvent;
        if (invalid) return cudaErrorStreamCaptureInvalidated;
        if (!event->recorder) return break_off(cudaErrorStreamCaptureIsolation);
        if (stream->recorder && stream->recorder != this) return break_off(cudaErrorStreamCaptureMerge);
        if (!stream->recorder) join(stream);
        const places mark = marks[event->mark];
        const size_t own = (size_t)stream->lane;
        for (size_t l = 0; l < mark.size(); l++) {
            if (l == own) continue;
            reached[own].resize(graph->size());
            if (mark[l] <= reached[own][l]) continue;
            (*graph)[own].steps.push_back({nullptr, l, mark[l]});
            reached[own][l] = mark[l];
        }
        return cudaSuccess;
    }
    cudaError_t refuse() override
    {
        return break_off(cudaErrorStreamCaptureUnsupported);
    }
    cudaError_t refuse_event() override
    {
        return cudaErrorCapturedEvent;
    }
};
} // namespace

static bool is_default(cudaStream_t handle)
{
    return (uintptr_t)handle < 2;
}

static capture *capture_of(cudaStream_t handle)
{
    if (is_default(handle)) return NULL;
    cudaStream_t s = emulated_stream(handle);
    return s ? static_cast<capture *>(s->recorder.load()) : NULL;
}

/* ---- Calls that a capture forbids ---- */

static __thread enum cudaStreamCaptureMode own_mode;
static emulated_lock forbidding_lock;
static std::atomic<int> forbidding_count;
static std::set<capture *> &forbidding() /* captures that are not relaxed */
{
    static std::set<capture *> *all = new std::set<capture *>;
    return *all;
}

static void begin_to_forbid(capture *c)
{
    if (c->mode == cudaStreamCaptureModeRelaxed) return;
    forbidding_lock.lock();
    forbidding().insert(c);
    forbidding_count++;
    forbidding_lock.unlock();
}

static void end_to_forbid(capture *c)
{
    forbidding_lock.lock();
    forbidding_count -= (int)forbidding().erase(c);
    forbidding_lock.unlock();
}

/* A global capture forbids such calls to all threads but those that have exchanged their mode, a thread-local one to
 * the thread that began it. */
cudaError_t emulated_unsafe_call()
{
    if (!forbidding_count || own_mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
    bool forbidden = false;
    forbidding_lock.lock();
    for (capture *c : forbidding()) {
        const bool everywhere = c->mode == cudaStreamCaptureModeGlobal && own_mode == cudaStreamCaptureModeGlobal;
        if (!everywhere && !pthread_equal(c->thread, pthread_self())) continue;
        c->invalid = forbidden = true;
    }
    forbidding_lock.unlock();
    return forbidden ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

/* ---- Calls about capture ---- */

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    if (!mode || (unsigned)*mode > cudaStreamCaptureModeRelaxed) return emulated_error(cudaErrorInvalidValue);
    std::swap(*mode, own_mode);
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, enum cudaStreamCaptureMode mode)
{
    static std::atomic<unsigned long long> ids;
    if ((unsigned)mode > cudaStreamCaptureModeRelaxed) return emulated_error(cudaErrorInvalidValue);
    if (is_default(handle)) return emulated_error(cudaErrorStreamCaptureUnsupported);
    cudaStream_t s = emulated_stream(handle);
    if (!s || s->recorder) return emulated_error(cudaErrorIllegalState);
    auto made = std::make_shared<capture>();
    made->origin = s, made->mode = mode, made->thread = pthread_self(), made->id = ++ids;
    made->join(s);
    begin_to_forbid(made.get());
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *out)
{
    capture *found = capture_of(handle);
    if (!out) return emulated_error(cudaErrorInvalidValue);
    *out = NULL;
    if (!found) return emulated_error(cudaErrorIllegalState);
    std::shared_ptr<capture> c = found->shared_from_this();
    if (c->mode != cudaStreamCaptureModeRelaxed && !pthread_equal(c->thread, pthread_self()))
        return emulated_error(cudaErrorStreamCaptureWrongThread);
    if (c->origin != emulated_stream(handle)) return emulated_error(c->break_off(cudaErrorStreamCaptureUnmatched));
    end_to_forbid(c.get());
    c->leave();
    if (c->invalid) return emulated_error(cudaErrorStreamCaptureInvalidated);
    if (!c->joined()) return emulated_error(cudaErrorStreamCaptureUnjoined);
    *out = c->made.release();
    return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, enum cudaStreamCaptureStatus *status)
{
    if (!status) return emulated_error(cudaErrorInvalidValue);
    const capture *c = capture_of(handle);
    *status = !c           ? cudaStreamCaptureStatusNone
              : c->invalid ? cudaStreamCaptureStatusInvalidated
                           : cudaStreamCaptureStatusActive;
    return cudaSuccess;
}

/* The graph is the one that the end of the capture will give. Nodes have no handles. */
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, enum cudaStreamCaptureStatus *status, unsigned long long *id,
                                     cudaGraph_t *graph, const cudaGraphNode_t **dependencies,
                                     const cudaGraphEdgeData **edges, size_t *count)
{
    if (cudaStreamIsCapturing(handle, status)) return emulated_error(cudaErrorInvalidValue);
    const capture *c = capture_of(handle);
    if (id && c) *id = c->id;
    if (graph) *graph = c ? c->made.get() : NULL;
    if (c && (dependencies || edges || count))
        return emulated_error(hostcuda_not_supported("cudaStreamGetCaptureInfo with nodes"));
    return cudaSuccess;
}

/* ---- Graphs ---- */

/* A step is a node. */
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
    if (!graph || !count) return emulated_error(cudaErrorInvalidValue);
    size_t found = 0;
    for (lane &l : *graph->graph)
        for (step &s : l.steps) {
            if (!s.work) continue;
            if (nodes && found < *count) nodes[found] = (cudaGraphNode_t)&s;
            found++;
        }
    if (nodes)
        for (; found < *count; found++) nodes[found] = NULL;
    else
        *count = found;
    return cudaSuccess;
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t *object, void *argument, cudaHostFn_t destroy, unsigned references,
                                 unsigned)
{
    if (!object || !destroy || !references) return emulated_error(cudaErrorInvalidValue);
    *object = new CUuserObject_st{argument, destroy, {references}};
    return cudaSuccess;
}

cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned count)
{
    if (!object) return emulated_error(cudaErrorInvalidValue);
    object->references += count;
    return cudaSuccess;
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned count)
{
    if (!object) return emulated_error(cudaErrorInvalidValue);
    object->release(count);
    return cudaSuccess;
}

/* The graph, and the instances of it, keep the object. */
cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count, unsigned flags)
{
    if (!graph || !object) return emulated_error(cudaErrorInvalidValue);
    if (!(flags & cudaGraphUserObjectMove)) object->references += count;
    graph->graph->kept.push_back({object, count});
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long)
{
    if (!out || !graph) return emulated_error(cudaErrorInvalidValue);
    std::unique_ptr<CUgraphExec_st> made(new CUgraphExec_st);
    made->graph = graph->graph;
    const int before = emulated_device();
    cudaError_t error = cudaSuccess;
    for (size_t l = 1; !error && l < made->graph->size(); l++) {
        cudaStream_t stream;
        error = cudaSetDevice((*made->graph)[l].device);
        if (!error) error = emulated_create_stream(&stream, cudaStreamNonBlocking, 0);
        if (!error) made->streams.push_back(stream);
    }
    cudaSetDevice(before);
    if (error) {
        cudaGraphExecDestroy(made.release());
        return error;
    }
    *out = made.release();
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags)
{
    return cudaGraphInstantiate(out, graph, flags);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t instance, cudaStream_t)
{
    return instance ? cudaSuccess : emulated_error(cudaErrorInvalidValue);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t instance, cudaStream_t stream)
{
    if (!instance) return emulated_error(cudaErrorInvalidValue);
    if (capture_of(stream)) return emulated_error(hostcuda_not_supported("cudaGraphLaunch in a stream that captures"));
    auto now = std::make_shared<launch>(instance->graph);
    instance->lock.lock();
    std::shared_ptr<launch> before = std::move(instance->last);
    instance->last = now;
    instance->lock.unlock();
    for (size_t l = 1; l < instance->graph->size(); l++) {
        emulated_push(instance->streams[l - 1], true, [=] {
            emulated_wait_for(&now->begun, 1);
            order_after(&now->order[0]);
            now->run(l);
        });
    }
    return emulated_enqueue(stream, true, [=] {
        if (before) emulated_wait_for(&before->ended, 1);
        order_before(&now->order[0]);
        now->begun = 1;
        emulated_wake(&now->begun);
        now->run(0);
        now->ended = 1;
        emulated_wake(&now->ended);
    });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t instance)
{
    if (!instance) return emulated_error(cudaErrorInvalidValue);
    for (cudaStream_t s : instance->streams) cudaStreamDestroy(s);
    delete instance;
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    if (!graph) return emulated_error(cudaErrorInvalidValue);
    delete graph;
    return cudaSuccess;
}
