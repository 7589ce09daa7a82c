// A reporter that writes down only the tests that were skipped or left to do.
import type { TestEvent } from 'node:test/reporters'

export default async function* skips(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const event of events) {
    if (event.type !== 'test:pass' && event.type !== 'test:fail') continue
    if (event.data.skip !== undefined || event.data.todo !== undefined)
      yield `${event.data.file ?? ''}: ${event.data.name}\n`
  }
}
