// A token bucket per caller, with ten seconds' worth of tokens. Each server counts by its own monotonic clock, in
// memory, because this runs for every request.

interface RateLimit {
  /** Takes a token. Returns 0, or after how many seconds to try again. */
  take(key: string, perMinute: number): number
}

interface Bucket {
  level: number
  atMs: number
}

const burstSeconds = 10
/** With more callers at once, the least recent one is evicted. */
const maxBuckets = 20_000

export function createRateLimit(nowMs: () => number = () => performance.now()): RateLimit {
  const buckets = new Map<string, Bucket>()

  return {
    take(key, perMinute) {
      const perMs = perMinute / 60_000
      const capacity = Math.max(1, perMs * burstSeconds * 1_000)
      const now = nowMs()
      const bucket = buckets.get(key) ?? { level: capacity, atMs: now }
      bucket.level = Math.min(capacity, bucket.level + (now - bucket.atMs) * perMs)
      bucket.atMs = now
      if (!buckets.delete(key) && buckets.size >= maxBuckets) buckets.delete(buckets.keys().next().value as string)
      buckets.set(key, bucket)
      if (bucket.level < 1) return Math.max(1, Math.ceil((1 - bucket.level) / perMs / 1_000))
      bucket.level -= 1
      return 0
    },
  }
}
