// The few pictures: drawn by hand on a grid of 16, in the colour of the text.
const paths = {
  more: 'M3 8h.01M8 8h.01M13 8h.01',
  copy: 'M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z',
  check: 'M3 8.5l3.2 3.2L13 4.8',
  close: 'M4 4l8 8M12 4l-8 8',
  menu: 'M2.5 4.5h11M2.5 8h11M2.5 11.5h11',
  code: 'M5.5 4.5L2 8l3.5 3.5M10.5 4.5L14 8l-3.5 3.5',
  plus: 'M8 3v10M3 8h10',
} as const

export function Icon({ name }: { readonly name: keyof typeof paths }) {
  const width = name === 'more' ? 2.4 : 1.5
  return (
    <svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true">
      <path
        d={paths[name]}
        fill="none"
        stroke="currentColor"
        strokeWidth={width}
        strokeLinecap="round"
        strokeLinejoin="round"
      />
    </svg>
  )
}
