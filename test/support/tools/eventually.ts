// Retries an assertion until it holds, for states without an event to await. Fails with the last error.

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
