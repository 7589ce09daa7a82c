// A handler's answer with a status other than the operation's default.
export class Answer<T> {
  readonly status: number
  readonly value: T
  /** The operation changed nothing, so there is no event. */
  readonly isUnchanged: boolean

  constructor(status: number, value: T, isUnchanged = false) {
    this.status = status
    this.value = value
    this.isUnchanged = isUnchanged
  }
}
