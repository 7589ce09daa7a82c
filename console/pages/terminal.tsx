// To come.
export const TerminalPage = () => null
