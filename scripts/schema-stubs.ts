// In place of typebox, for clients: they check no schemas, the service does. The functions stay, and make schemas without
// fields.
import * as typebox from 'typebox'

const names = Object.keys(typebox).filter((name) => name !== 'default')
const exported = names.map((name) => `none as ${name}`).join(', ')
export const schemaStubs = `const none = () => ({ properties: {} })\nexport { ${exported} }`
