// The store's contract on the engine in memory.
import { openMemory } from '../../src/store/memory.ts'
import { storeContract } from './store.ts'

storeContract({ name: 'memory', open: async (options) => openMemory(options) })
