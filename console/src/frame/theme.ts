// frame/: what surrounds every screen: navigation, theme, the signed-in key.

export type Theme = 'system' | 'light' | 'dark';

export const themeStorageKey = 'intake-console-theme';
/** Sent to the document when the colours have changed. */
export const themeChanged = 'intake-theme-changed';

export function keptTheme(): Theme {
  try {
    const kept = localStorage.getItem(themeStorageKey);
    return kept === 'light' || kept === 'dark' ? kept : 'system';
  } catch {
    return 'system'; // Storage may be forbidden.
  }
}

export function applyTheme(theme: Theme): void {
  if (theme === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  document.dispatchEvent(new Event(themeChanged));
}

export function keepTheme(theme: Theme): void {
  applyTheme(theme);
  try {
    if (theme === 'system') localStorage.removeItem(themeStorageKey);
    else localStorage.setItem(themeStorageKey, theme);
  } catch {
    // The choice then lasts until the page is closed.
  }
}
