// For what happens without an event that a test could wait for: looks again until it holds, or fails as it failed last.

export async function eventually<T>(check: () => T | Promise<T>, withinMs = 120_000): Promise<T> {
  const endMs = performance.now() + withinMs
  for (;;) {
    try {
      return await check()
    } catch (error) {
      if (performance.now() > endMs) throw error
    }
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
