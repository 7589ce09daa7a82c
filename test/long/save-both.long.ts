// Saves and commits on both architectures, of which the usual tests do one.
process.env.SVC3_TEST_ALL = 'yes'
await import('../e2e/save.test.ts')
