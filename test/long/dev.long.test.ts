// `svc3 dev`, killed with -9 more often than in the usual tests.
process.env.SVC3_TEST_ALL = 'yes'
await import('../e2e/dev.full.test.ts')
