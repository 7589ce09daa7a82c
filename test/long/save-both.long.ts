// Saves, commits and guests of the driver on both architectures, of which the usual tests do one, or not all.
process.env.SVC3_TEST_ALL = 'yes'
await import('../e2e/save.test.ts')
await import('../contract/qemu-driver-guest.test.ts')
