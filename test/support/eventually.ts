// For what happens without an event that a test could wait for: looks again until it holds, or fails as it failed last.

export async function eventually(check: () => Promise<void>, withinMs = 10_000): Promise<void> {
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
