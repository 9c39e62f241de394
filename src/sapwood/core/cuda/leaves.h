// Leaves on the device: the leaf of every row, the wide sums of the sampled rows of each leaf, the
// leaf values.
#pragma once
#include "cuda/growth.h"

namespace sapwood {

// of a node's sums, a cache line: atomics on one line wait for each other
constexpr int LEAF_STRIDE = 16;
// 32-bit sums of a leaf: low and high parts of g and h, and rows
constexpr int LEAF_PARTS = 5;
constexpr int MAX_TREE_SHARED = 2048;  // nodes of a tree that is walked in shared memory

inline int64_t* leaf_sums_of(const Job& j, int k) {
  return of_tree(j, j.leaf_sums) + (j.one_tree ? k * j.max_nodes * LEAF_STRIDE : 0);
}

struct Step {            // a node as a row walks through it
  const uint8_t* codes;  // of its column; null: a leaf
  int32_t left;
  uint16_t low, length;  // codes that go right
};

// in `low`: the codes that go right are a set
constexpr uint16_t OWN_SET = 0xffff, LEVEL_SET = 0xfffe;

inline Step step_of(const Job& j, const NodeSplit& n, int left, uint16_t set) {
  if (left == 0) {
    return {nullptr, 0, 0, 0};
  }
  if (n.set != nullptr) {
    return {j.planes + (int64_t)n.place * j.n, left, set, 0};
  }
  const Split s =
      threshold_split((uint32_t)n.bin, (uint32_t)j.n_bins[n.place], n.missing_left != 0);
  return {j.planes + (int64_t)n.place * j.n, left, (uint16_t)s.low, (uint16_t)s.length};
}

inline int walk(const Job& j, const Step* steps, const uint64_t* level_set, int64_t row) {
  int at = 0;
  for (Step s = steps[0]; s.left != 0; s = steps[at]) {
    const uint32_t code = s.codes[row];
    bool right = code - s.low < s.length;
    if (has_categories(j) && s.low >= LEVEL_SET) {
      right = (s.low == LEVEL_SET ? level_set : of_tree(j, j.sets) + SET_WORDS * at)[code >> 6] >>
                  (code & 63) &
              1;
    }
    at = s.left + right;
  }
  return at;
}

// Sums of plain rows in 32-bit parts; a lane has its copy, as far as shared memory goes.
inline void add_parts(int* sums, int n_copies, int node, Pair q) {
  int* at = sums + node * LEAF_PARTS * n_copies + threadIdx.x % n_copies;
  const int mask = (1 << PART_BITS) - 1;
  atomicAdd(at, q.g & mask);
  atomicAdd(at + n_copies, q.g >> PART_BITS);
  atomicAdd(at + 2 * n_copies, q.h & mask);
  atomicAdd(at + 3 * n_copies, q.h >> PART_BITS);
  atomicAdd(at + 4 * n_copies, 1);
}

// The sum of a part over its copies, which are cleared; threads start at different copies, which
// are different banks.
inline int64_t take_copies(int* part, int n_copies, int start) {
  int64_t sum = 0;
  for (int c = 0; c < n_copies; c++) {
    int* own = part + (start + c) % n_copies;
    sum += *own;
    *own = 0;
  }
  return sum;
}

// A thread has the gradients, the hessians or the rows of a node.
inline void flush_parts(int* sums, int n_copies, int n_nodes, int64_t* out) {
  for (int k = threadIdx.x; k < 3 * n_nodes; k += blockDim.x) {
    const int node = k / 3;
    const int what = k % 3;
    int* own = sums + (node * LEAF_PARTS + 2 * what) * n_copies;
    int64_t sum = take_copies(own, n_copies, k);
    if (what < 2) {
      sum += take_copies(own + n_copies, n_copies, k) * (1 << PART_BITS);
    }
    if (sum != 0) {
      add_to(out + LEAF_STRIDE * node + what, sum);
    }
  }
}

// What rows walk through, in shared memory. All threads of a block.
inline void find_steps(const Job& j, const Batch& batch, Step* steps) {
  const int n_old = batch.old.n_nodes;
  // the batch may or may not be split yet
  for (int i = threadIdx.x; i < batch.level.n_nodes; i += blockDim.x) {
    steps[i] = i < n_old ? step_of(j, NodeSplit(j, i, of_tree(j, j.nodes)[i], Batch{}),
                                   of_tree(j, j.nodes)[i].left, OWN_SET)
                         : Step{nullptr, 0, 0, 0};
  }
  __syncthreads();
  for (int i = threadIdx.x; i < batch.level.n_batch; i += blockDim.x) {
    steps[batch.items[i].node] = step_of(
        j, NodeSplit(j, batch.items[i].node, of_tree(j, j.nodes)[batch.items[i].node], batch),
        batch.level.first_child + 2 * i, is_symmetric(j) ? LEVEL_SET : OWN_SET);
  }
}

// The last step of growth, after which no child is searched, and then the leaves of rows.
SAPWOOD_BOUNDED(1024, 2) void find_leaves(SAPWOOD_JOB, int given, int step) {
  const Job& j = job;
  const int k = given + place_of_tree();
  DYNAMIC_SHARED(Step, steps);
  __shared__ BatchItem here[MAX_HERE + 1];
  __shared__ Batch batch;
  const bool known = j.one_tree && k > 0;  // the leaves are those of the first output
  const int n_blocks = gridDim.x - (int)j.n_recorders;
  const int block = blockIdx.x - (int)j.n_recorders;
  if (!known) {
    next_batch(j, k, step, here, &batch);
    if (block < 0) {
      return record_batch(j, step, batch, blockIdx.x, (int)j.n_recorders);
    }
    find_steps(j, batch, steps);
  }
  if (block < 0) {
    return;
  }
  const int n_nodes = known ? of_tree(j, j.levels)[step].n_nodes : batch.level.n_nodes;
  const int n_copies = (int)j.leaf_copies;
  int* sums = (int*)(steps + j.max_nodes);
  for (int i = threadIdx.x; i < n_nodes * LEAF_PARTS * n_copies; i += blockDim.x) {
    sums[i] = 0;
  }
  __syncthreads();
  const int64_t each = (j.n + n_blocks - 1) / n_blocks;
  const int64_t low = block * each;
  const int64_t high = low + each < j.n ? low + each : j.n;
  const Pair* pairs = j.leaf_pairs + gradients_of(j, k) * j.n;
  const uint8_t* in_sample = j.in_sample + copy_of(j, k) * j.n;
  uint16_t* leaf = j.leaf + k * j.n;
  int64_t* out = leaf_sums_of(j, k);
  for (int64_t first = low; first < high; first += MAX_SPAN) {
    const int64_t end = first + MAX_SPAN < high ? first + MAX_SPAN : high;
    for (int64_t row = first + threadIdx.x; row < end; row += blockDim.x) {
      const int node = known ? j.leaf[row] : walk(j, steps, batch.set, row);
      leaf[row] = (uint16_t)node;
      if (!j.all_rows && !in_sample[row]) {
        continue;
      }
      const Pair q = pairs[row];
      if (n_copies > 0) {
        add_parts(sums, n_copies, node, q);
        continue;
      }
      const int64_t w = j.repeated ? j.repeats[row] : 1;
      add_to(out + LEAF_STRIDE * node, q.g * w);
      add_to(out + LEAF_STRIDE * node + 1, q.h * w);
      add_to(out + LEAF_STRIDE * node + 2, j.repeats != nullptr ? j.repeats[row] : 1);
    }
    __syncthreads();
    if (n_copies > 0) {
      flush_parts(sums, n_copies, n_nodes, out);
    }
    __syncthreads();
  }
}

// The gain of a split: what the search found, or, where it looked at sums over outputs, that of the
// output's own.
inline double gain_of(const Job& j, int k, int id, const int64_t* total, const Scale& scale) {
  if (!j.sketched) {
    return nodes_of(j, k)[id].gain;
  }
  const int64_t* one = total + LEAF_STRIDE * of_tree(j, j.nodes)[id].left;
  const int64_t* two = one + LEAF_STRIDE;
  const Sums l{one[0], one[1]};
  const Sums r{two[0], two[1]};
  if (l.h == 0 || r.h == 0) {
    return 0.0;
  }
  const double gs = g_scale(scale);
  const double hs = h_scale(scale);
  const Penalty p{j.reg_lambda * hs, j.reg_alpha * gs, j.max_delta_step * gs / hs, 0.0};
  return 0.5 * (split_score(l, r, p) - node_score(l + r, p)) * (hs / (gs * gs));
}

// The sums of nodes with children, those of the deepest first. All threads of a block.
inline void add_children(const Node* nodes, int n_nodes, int64_t* total) {
  __shared__ int deepest;
  if (threadIdx.x == 0) {
    deepest = 0;
  }
  __syncthreads();
  int own = 0;
  for (int i = threadIdx.x; i < n_nodes; i += blockDim.x) {
    own = nodes[i].depth > own ? nodes[i].depth : own;
  }
  if (own > 0) {
    atomicMax(&deepest, own);
  }
  __syncthreads();
  for (int depth = deepest - 1; depth >= 0; depth--) {
    for (int i = threadIdx.x; i < n_nodes; i += blockDim.x) {
      const int left = nodes[i].left;
      if (left == 0 || nodes[i].depth != depth) {
        continue;
      }
      const int64_t* one = total + LEAF_STRIDE * left;
      const int64_t* two = one + LEAF_STRIDE;
      for (int e = 0; e < 3; e++) {
        total[LEAF_STRIDE * i + e] = one[e] + two[e];
      }
    }
    __threadfence_block();
    __syncthreads();
  }
}

// Sums of all nodes from those of the leaves, steps, values; the finished tree. One block.
SAPWOOD_KERNEL void finish_tree(SAPWOOD_JOB, int given, int step) {
  const Job& j = job;
  const int k = given + place_of_tree();
  const Growth& t = growth_of(j);
  const int n_nodes = of_tree(j, j.levels)[step].n_nodes;
  const int turn =
      j.one_tree ? j.growth->n_finished : j.growth->n_finished - n_beside() + place_of_tree();
  const int tree = turn % (int)j.n_store;
  int64_t* total = leaf_sums_of(j, k);
  const Scale& scale = j.output[gradients_of(j, k)].wide;
  TreeNode* out = j.trees + (int64_t)tree * j.max_nodes;
  double* value = j.node_value + k * j.max_nodes;
  const double hs = h_scale(scale);
  const double unit = power_of_two(-(int)j.weight_shift);
  add_children(of_tree(j, j.nodes), n_nodes, total);
  for (int i = threadIdx.x; i < n_nodes; i += blockDim.x) {
    const Node& n = of_tree(j, j.nodes)[i];
    const bool split = n.left != 0;
    const Sums sums{total[LEAF_STRIDE * i], total[LEAF_STRIDE * i + 1]};
    const bool by_many =
        has_categories(j) && i > 0 && j.category[of_tree(j, j.nodes)[n.parent].place] == PARTITION;
    TreeNode o{leaf_value(sums, scale, by_many ? j.reg_lambda + j.cat_l2 : j.reg_lambda,
                          j.reg_alpha, j.max_delta_step),
               split ? gain_of(j, k, i, total, scale) : 0.0,
               (double)sums.h / hs,
               (double)total[LEAF_STRIDE * i + 2] * unit,
               split ? n.column : -1,
               split ? n.bin : -1,
               n.left,
               split ? n.missing_left : 0};
    out[i] = o;
    if (MAY_RANK && j.first_use != nullptr && split) {
      atomicOr(j.used + j.n_tiles + n.column / LANES, 1u << n.column % LANES);
    }
  }
  __syncthreads();
  for (int depth = 1, more = j.path_smooth != 0.0; more; depth++) {  // parents first
    int deeper = 0;
    for (int i = threadIdx.x; i < n_nodes; i += blockDim.x) {
      deeper |= of_tree(j, j.nodes)[i].depth > depth;
      if (of_tree(j, j.nodes)[i].depth != depth) {
        continue;
      }
      const double own = out[i].value;
      const double above = out[of_tree(j, j.nodes)[i].parent].value;
      const double count = out[i].count;
      out[i].value = (own * count + above * j.path_smooth) / (count + j.path_smooth);
    }
    more = __syncthreads_or(deeper);
  }
  __syncthreads();
  const double real = h_scale(t.scale) / g_scale(t.scale);
  for (int i = threadIdx.x; i < n_nodes; i += blockDim.x) {
    double v = out[i].left != 0 ? 0.0 : out[i].value;
    if (j.direction != nullptr && out[i].left == 0) {
      const double low = of_tree(j, j.nodes)[i].low * real;
      const double high = of_tree(j, j.nodes)[i].high * real;
      v = v < low ? low : v > high ? high : v;
    }
    value[i] = out[i].value = out[i].left != 0 ? 0.0 : j.turn->learning_rate * v;
  }
  __syncthreads();
  for (int i = threadIdx.x; has_categories(j) && i < (int)SET_WORDS * n_nodes; i += blockDim.x) {
    j.tree_sets[(int64_t)tree * j.max_nodes * SET_WORDS + i] = of_tree(j, j.sets)[i];
  }
  if (threadIdx.x == 0) {
    j.tree_sizes[tree] = n_nodes;
    j.growth->n_finished += j.one_tree != 0;
  }
  // no tree needs it any more
  if (MAY_RANK && j.noisy && threadIdx.x < 8 && copy_of(j, k) == (int)j.n_copies - 1) {
    ((Output&)j.all_output[output_of(j, k)]).noise[threadIdx.x] = 0;
  }
}

}  // namespace sapwood
