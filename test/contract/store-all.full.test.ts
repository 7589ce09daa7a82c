// The store's contract on every engine at its full length: a thousand random sequences, a hundred writers of one key.
process.env.SVC3_TEST_ALL = 'yes'
await import('./store-memory.test.ts')
await import('./store-sqlite.test.ts')
await import('./store-etcd.test.ts')
