const width = 24
const intervalMs = 100

export type ProgressLine = {
  /** `part` is 0 to 1. */
  readonly update: (text: string, part: number) => void
  readonly end: () => void
}

/** A bar on stderr that is drawn over itself; nothing where stderr is no terminal. */
export function progressLine(wanted = true): ProgressLine {
  const shown = wanted && process.stderr.isTTY === true
  let drawnAt = 0
  return {
    update: (text, part) => {
      const now = Date.now()
      if (!shown || (now - drawnAt < intervalMs && part < 1)) return
      drawnAt = now
      const filled = Math.round(Math.min(Math.max(part, 0), 1) * width)
      process.stderr.write(`\r\x1b[2K${'█'.repeat(filled)}${'░'.repeat(width - filled)} ${text}`)
    },
    end: () => {
      if (shown) process.stderr.write('\r\x1b[2K')
    },
  }
}
