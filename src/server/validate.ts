// Requests against their schemas. Bodies as they are: nothing is coerced and nothing unknown is dropped or refused, so
// that newer clients work. Queries are text, so numbers and booleans are read out of them.
import { Ajv } from 'ajv'
import type { FastifySchemaCompiler } from 'fastify'

export function createValidatorCompiler(): FastifySchemaCompiler<object> {
  const bodies = new Ajv({
    allErrors: true,
    useDefaults: false,
    coerceTypes: false,
    removeAdditional: false,
    validateFormats: false,
  })
  const queries = new Ajv({ allErrors: true, coerceTypes: true, removeAdditional: false, validateFormats: false })
  return ({ schema, httpPart }) => (httpPart === 'body' ? bodies : queries).compile(schema)
}
