const width = 24
const drawIntervalMs = 100
/** Without a terminal, a line now and then shows that the work goes on. */
const lineIntervalMs = 2_000

export type ProgressLine = {
  /** `part` is 0 to 1. */
  readonly update: (text: string, part: number) => void
  readonly end: () => void
}

/** A bar on stderr that is drawn over itself; where stderr is no terminal, a plain line every few seconds. */
export function makeProgressLine(wanted = true): ProgressLine {
  if (!wanted) return { update: () => undefined, end: () => undefined }
  return process.stderr.isTTY === true ? makeBar() : makePlainLines()
}

function makeBar(): ProgressLine {
  let drawnAt = 0
  return {
    update: (text, part) => {
      const now = Date.now()
      if (now - drawnAt < drawIntervalMs && part < 1) return
      drawnAt = now
      const filled = Math.round(Math.min(Math.max(part, 0), 1) * width)
      process.stderr.write(`\r\x1b[2K${'█'.repeat(filled)}${'░'.repeat(width - filled)} ${text}`)
    },
    end: () => process.stderr.write('\r\x1b[2K'),
  }
}

function makePlainLines(): ProgressLine {
  let writtenAt = Date.now()
  return {
    update: (text, part) => {
      const now = Date.now()
      if (now - writtenAt < lineIntervalMs) return
      writtenAt = now
      process.stderr.write(`${Math.floor(Math.min(Math.max(part, 0), 1) * 100)} % ${text}\n`)
    },
    end: () => undefined,
  }
}
