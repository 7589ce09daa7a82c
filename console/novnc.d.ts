// noVNC's types name a path that its package does not have: this is the one that it has.
declare module '@novnc/novnc' {
  export { default } from '@novnc/novnc/lib/rfb'
}
