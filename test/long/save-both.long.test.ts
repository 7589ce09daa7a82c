// Saves, commits, guests and the contract of the driver on both architectures, of which the usual tests do one.
process.env.SVC3_TEST_ALL = 'yes'
await import('../e2e/save.full.test.ts')
await import('../contract/qemu-driver-guest.full.test.ts')
await import('../contract/qemu-driver.test.ts')
await import('../contract/qemu-identity.full.test.ts')
