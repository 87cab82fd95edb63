const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB']

/** Formats a number of bytes for people, such as `1.5 MiB`. */
export function formatBytes(bytes: number): string {
  let value = bytes
  let unit = 0
  for (; value >= 1024 && unit < units.length - 1; unit++) value /= 1024
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`
}
