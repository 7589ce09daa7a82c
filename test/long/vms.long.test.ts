// VMs from deploy to delete, and an uploaded system, with what the usual tests leave to the README's tour.
process.env.SVC3_TEST_ALL = 'yes'
await import('../e2e/vms.full.test.ts')
await import('../e2e/own-images.full.test.ts')
