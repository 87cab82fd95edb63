/** Makes a bar on stderr that grows with `done`; it prints a line for each tenth where stderr is no terminal. */
export function makeProgressBar(label: string, total: number): (done: number) => void {
  const { isTTY } = process.stderr
  let shown = -1
  return (done) => {
    const tenths = Math.floor((done / total) * 10)
    const steps = isTTY ? Math.floor((done / total) * 100) : tenths
    if (steps === shown) return
    shown = steps
    const bar = `${'#'.repeat(tenths)}${'.'.repeat(10 - tenths)}`
    const text = `${label} [${bar}] ${done.toLocaleString('en-US')} of ${total.toLocaleString('en-US')}`
    process.stderr.write(isTTY ? `\r${text}${done >= total ? '\n' : ''}` : `${text}\n`)
  }
}
