// Validates requests by schema. Bodies are not coerced, and their unknown fields are ignored, for newer clients.
// Queries are text and are coerced. Schemas are compiled on first use, to start faster.
import { Ajv, type AnySchema, type Options, type ValidateFunction } from 'ajv'

const asTheyAre: Options = {
  allErrors: true,
  coerceTypes: false,
  removeAdditional: false,
  validateFormats: false,
  // Checking our own schemas against the meta-schema would take most of the time.
  validateSchema: false,
}

/** Hints for clients of Kubernetes, which do not affect validation. */
const marks = ['x-kubernetes-list-type', 'x-kubernetes-list-map-keys']

export type Validator = { (value: unknown): boolean; errors: ValidateFunction['errors'] }

/** Shared by all services of a process, because their schemas are the same. */
export const bodyValidator = compiler(asTheyAre)
export const queryValidator = compiler({ ...asTheyAre, coerceTypes: true })

function compiler(options: Options): (schema: AnySchema) => Validator {
  let ajv: Ajv | undefined
  return (schema) => {
    let compiled: ValidateFunction | undefined
    const validator = (value: unknown): boolean => {
      ajv ??= new Ajv(options).addVocabulary(marks)
      compiled ??= ajv.compile(schema)
      const isValid = compiled(value)
      validator.errors = compiled.errors
      return isValid
    }
    validator.errors = undefined as ValidateFunction['errors']
    return validator
  }
}
