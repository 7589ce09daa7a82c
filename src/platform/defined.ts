// Spreads optional fields into an object, for types in which an optional field is absent rather than undefined.
type Defined<T> = { [Name in keyof T]?: Exclude<T[Name], undefined> }

export const defined = <T extends object>(fields: T): Defined<T> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Defined<T>
