// The type definitions of noVNC name a path that its package does not export. This declares the exported one.
declare module '@novnc/novnc' {
  export { default } from '@novnc/novnc/lib/rfb'
}
