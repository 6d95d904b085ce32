/* SPDX-License-Identifier: BSD-2-Clause */
const SUFFIXES = ['', 'K', 'M', 'G'];

/* Sizes as people write them: 64K, not 65536. */
export function size(number) {
    let power = 0;
    while (number && number % 1024 === 0 && power < SUFFIXES.length - 1) {
        number /= 1024;
        power++;
    }
    return `${number}${SUFFIXES[power]}`;
}

/* Four significant digits. */
export function value(number) {
    if (number == null)
        return '–';
    if (Number.isInteger(number) && Math.abs(number) < 1e6)
        return String(number);
    const magnitude = Math.abs(number);
    if (magnitude >= 1e7 || (magnitude && magnitude < 1e-4))
        return number.toExponential(3);
    return String(Number(number.toPrecision(magnitude >= 1000 ? 5 : 4)));
}

export function axisValue(number, unit) {
    return unit === 'B' ? size(number) : value(number);
}

export function percent(number) {
    if (number == null)
        return '–';
    return `${number > 0 ? '+' : number < 0 ? '−' : ''}${Math.abs(number).toFixed(1)}%`;
}

export function count(number, one, many = `${one}s`) {
    return `${number} ${number === 1 ? one : many}`;
}

export function date(text) {
    return text.replace('T', ' ').replace('Z', ' UTC');
}
